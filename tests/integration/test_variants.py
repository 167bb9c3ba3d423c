"""Every variant of a task's parts and of penalties through a real run: trained, saved, loaded, the same scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft
from tests.contracts.registry import of_rows, variants
from tests.tiny import recipe_content, write_recipe
from weft.data.long_texts import LongTextsConfig
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.pooling import PoolingConfig
from weft.penalties import PenaltyConfig
from weft.regularizers import RegularizerConfig

pytestmark = pytest.mark.usefixtures("few_resamples")

SINGLE_NUMBER = {"cosine", "relu-cosine", "scaled-cosine"}


def run(tiny: Path, folder: Path, changes: dict[str, dict[str, Any]], **top: Any) -> weft.Model:
    content = recipe_content(tiny, epochs=1, **top)
    for task, own in changes.items():
        content["tasks"][task] |= own
    model = weft.train(write_recipe(folder, content), folder / "run", steps=2)
    result = json.loads((folder / "run" / "result.json").read_text())
    scores = model.evaluate().scores
    for task, values in result["dev"].items():
        for metric, value in values.items():
            if value is None:  # an undefined correlation is null in the file
                assert np.isnan(scores[task][metric])
            else:
                assert scores[task][metric] == pytest.approx(value, abs=1e-6), (task, metric)
    return model


@pytest.mark.parametrize("name", of_rows(PoolingConfig))
@pytest.mark.parametrize("layer", [None, 0, "mix"])
def test_poolings_from_any_layer(tiny: Path, tmp_path: Path, name: str, layer: Any) -> None:
    own = {"pooling": name} if layer is None else {"pooling": name, "layer": layer}
    run(tiny, tmp_path, {"sentiment": own, "similarity": own})


@pytest.mark.parametrize("name", variants(LongTextsConfig))
@pytest.mark.parametrize("regularizer", variants(RegularizerConfig))
def test_long_texts(tiny: Path, tmp_path: Path, name: str, regularizer: str) -> None:
    own = {"long_texts": name, "regularizer": regularizer, "pooling": "mean"}
    run(tiny, tmp_path, {"sentiment": own, "similarity": {"long_texts": name}}, max_length=8, surgery="pcgrad")


@pytest.mark.parametrize("name", variants(HeadConfig))
def test_heads(tiny: Path, tmp_path: Path, name: str) -> None:
    changes: dict[str, dict[str, Any]] = {"similarity": {"head": name}}
    if name == "vectors":
        run(tiny, tmp_path, {"similarity": {"head": name, "loss": "angle"}})
        return
    if name == "relu-cosine":
        changes["similarity"] |= {"scale": False, "range": [0, 5]}
    if name not in SINGLE_NUMBER:
        changes["paraphrase"] = {"reading": "bi", "head": name}
    run(tiny, tmp_path, changes)


@pytest.mark.parametrize("name", of_rows(LossConfig))
def test_losses(tiny: Path, tmp_path: Path, name: str) -> None:
    if name == "cosine-embedding":
        own = {"reading": "bi", "head": "cosine", "loss": name}
        run(tiny, tmp_path, {"paraphrase": own, "similarity": {"head": "cosine", "loss": {"name": name, "cut": 2.5}}})
    elif name in ("cosent", "angle"):
        run(tiny, tmp_path, {"similarity": {"head": "vectors" if name == "angle" else "cosine", "loss": name}})
    elif name != "in-batch-negatives":  # a kind of its own: tests/integration/test_matches.py
        run(tiny, tmp_path, {"similarity" if name == "mse" else "sentiment": {"loss": name}})


@pytest.mark.parametrize("name", variants(RegularizerConfig))
@pytest.mark.parametrize("surgery", ["none", "pcgrad"])
def test_regularizers(tiny: Path, tmp_path: Path, name: str, surgery: str) -> None:
    run(tiny, tmp_path, {"sentiment": {"regularizer": name}, "similarity": {"regularizer": name}}, surgery=surgery)


@pytest.mark.parametrize("name", variants(PenaltyConfig))
def test_penalties_move_the_weights(tiny: Path, tmp_path: Path, name: str) -> None:
    ends = []
    for folder, penalties in (("with", [{"name": name, "weight": 5.0}]), ("without", [])):
        (tmp_path / folder).mkdir()
        model = run(tiny, tmp_path / folder, {}, penalties=penalties)
        ends.append(model.network.body.layers[0].inner.weight.detach())  # type: ignore[union-attr,index]
    assert not torch.equal(*ends)


def test_a_layer_shared_by_two_tasks_is_one_layer(tiny: Path, tmp_path: Path) -> None:
    own = {"reading": "bi", "head": "shared-pair"}
    model = run(tiny, tmp_path, {"paraphrase": own, "similarity": own})
    one, two = model.network.task("paraphrase").head, model.network.task("similarity").head
    assert one.layer is two.layer
    saved = load_file(tmp_path / "run" / "model" / "heads.safetensors")
    assert sum("layer.weight" in name for name in saved) == 1


def test_a_head_shared_by_two_tasks(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny, epochs=1)
    sentiment = content["tasks"]["sentiment"] | {"share_head": "mood"}
    content["tasks"] = {"first": sentiment, "second": sentiment, "similarity": content["tasks"]["similarity"]}
    model = weft.train(write_recipe(tmp_path, content), tmp_path / "run")
    assert model.network.task("first").head is model.network.task("second").head
    content["tasks"]["second"] = sentiment | {"head": "hidden"}
    with pytest.raises(weft.UserError, match="share_head: the head 'mood' of another task has a different structure"):
        weft.train(write_recipe(tmp_path, content, "b.toml"), tmp_path / "other")


def test_without_segments_transformers_still_agrees(tiny: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    model = run(tiny, tmp_path, {}, segments=False)
    folder = tmp_path / "run" / "model"
    inputs = AutoTokenizer.from_pretrained(folder)(["the old captain"], return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
    np.testing.assert_allclose(model.embed(["the old captain"], task="similarity"), hidden.mean(1), atol=1e-5)
    types = load_file(folder / "model.safetensors")["embeddings.token_type_embeddings.weight"]
    assert types[0].any()  # the pretrained vector of type 0 stays, for both texts
    assert torch.equal(types[0], types[1])


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("similarity", {"head": "relu-cosine"}, "scale = false keeps their units"),
        ("sentiment", {"head": "difference"}, "'difference' compares two vectors"),
        ("paraphrase", {"reading": "bi", "head": "cosine"}, "has one output, but the task's loss needs 2"),
        ("paraphrase", {"reading": "bi", "head": "cosine", "loss": "binary-cross-entropy"}, "a number from -1 to 1"),
        ("similarity", {"loss": "cosine-embedding"}, "expects a cosine .*, but the head outputs numbers without"),
        ("similarity", {"loss": "dual-objective"}, "is for one class out of several"),
        ("sentiment", {"layer": 3}, r"tasks.sentiment.layer: found 3, expected 0 \(the embeddings\) to 2"),
    ],
)
def test_what_does_not_fit_is_refused(
    tiny: Path, tmp_path: Path, task: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(weft.UserError, match=message):
        run(tiny, tmp_path, {task: change})
    assert not (tmp_path / "run").exists()
