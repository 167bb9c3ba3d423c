"""Labels of words work with every body, schedule, weighting and surgery."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.contracts.registry import variants
from tests.families import write_family
from tests.tagged import recipe, rows
from tests.tiny import write_body
from weft.bodies.registry import FAMILIES
from weft.build import assemble
from weft.export import export
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

TEXT = "A film sees dog, trout... no queasy!"
WEIGHTS = {
    "fixed": {"name": "fixed", "weights": {"slots": 1.0, "intent": 0.5}},
    "dwa": {"name": "dwa", "every": 1},
}
FIRST = {"staggered": {"name": "staggered", "first": "slots", "first_epochs": 1}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp = tmp_path_factory.mktemp("tagged")
    for split, own in (("train", rows(24, 0)), ("dev", rows(6, 1))):
        (tmp / f"{split}.jsonl").write_text("\n".join(map(json.dumps, own)) + "\n", encoding="utf-8")
    write_body(tmp / "body", dropout=0.0)
    return tmp


def built(folder: Path, changes: dict[str, Any] | None = None, **more: Any) -> Assembly:
    content = recipe(folder, "jsonl", "tokens", "slots", **more) | {"epochs": 2, "dropout": 0.0} | (changes or {})
    return assemble(parse_recipe(content, "test"), device="cpu")


def methods() -> list[Any]:
    found = []
    for key, registry, special in (
        ("schedule", ScheduleConfig, FIRST),
        ("weighting", WeightingConfig, WEIGHTS),
        ("surgery", SurgeryConfig, {}),
    ):
        found += [pytest.param({key: special.get(name, name)}, id=name) for name in variants(registry)]
    return found


@pytest.mark.parametrize("changes", methods())
def test_every_method_takes_a_step(folder: Path, changes: dict[str, Any]) -> None:
    made = built(folder, changes)
    report = made.step(made.plan.window(0), made.rates(0))
    assert all(np.isfinite(loss) for loss in report.losses.values())
    assert np.isfinite(report.norm)


@pytest.mark.parametrize("loss", ["cross-entropy", "crf"])
def test_a_rows_loss_does_not_depend_on_other_rows(folder: Path, loss: str) -> None:
    """So accumulation and several processes are exact: a task's loss is the mean over its rows."""
    made = built(folder, loss=loss)
    network, train = made.network.eval(), made.data["slots"].train
    whole = train.batch(np.arange(6))
    with torch.no_grad():
        losses = network.task("slots").losses(network([whole])[0], whole.target, whole.words)
        for row, expected in zip(whole.rows, losses, strict=True):
            one = train.batch(np.array([row]))
            (alone,) = network.task("slots").losses(network([one])[0], one.target, one.words)
            torch.testing.assert_close(alone, expected)


def test_all_tokens_of_a_word_are_trained(folder: Path) -> None:
    first, every = (built(folder, subwords=which).data["slots"].train.batch(np.arange(6)) for which in ("first", "all"))
    assert first.words is not None
    assert every.words is not None
    assert len(every.target) > len(first.target) == sum(len(row["tokens"]) for row in rows(24, 0)[:6])
    assert set(zip(first.words.rows.tolist(), first.words.positions.tolist(), strict=True)) < set(
        zip(every.words.rows.tolist(), every.words.positions.tolist(), strict=True)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(folder: Path, tmp_path: Path, family: str) -> None:
    """Trained for a step, loaded, predicted, and equal in transformers."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    body = write_family(tmp_path / "body", family)
    content = recipe(folder, "jsonl", "tokens", "slots") | {"body": str(body), "log": {"train_rows": 0}}
    weft.train(content, out=tmp_path / "run", steps=1)
    model = load(tmp_path / "run")
    (row,) = model.rows("slots", [TEXT])
    words = row[0].words
    assert words is not None
    assert [TEXT[a:b] for a, b, _ in words][:5] == ["A", "film", "sees", "dog", ","]
    assert (words[:, 2] > 0).all()
    (own,) = model.engine.answers("slots", [row])
    try:
        export(tmp_path / "run", "transformers", tmp_path / "hub")
        opened = AutoModelForTokenClassification.from_pretrained(tmp_path / "hub/slots").eval()
    except (OSError, UserError):
        assert not FAMILIES[family].has_plain_tagger
        return
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hub/slots")
    inputs = tokenizer([TEXT], return_tensors="pt", truncation=True)
    assert inputs["input_ids"][0].tolist() == row[0].ids.tolist()
    with torch.no_grad():
        best = opened(**inputs).logits[0].softmax(dim=1)[words[:, 2]].max(dim=1)
    np.testing.assert_allclose(best.values.numpy(), own[:, 3], atol=1e-5)


def test_intent_and_slots_of_one_file_share_rows_and_passes(folder: Path) -> None:
    """The tokens of a step are those of one task."""
    made = built(folder)
    window = made.plan.window(0)
    assert {part.task for part in window.parts} == {"slots", "intent"}
    own = [made.data["slots"].train.batch(part.rows) for part in window.parts if part.task == "slots"]
    assert made.step(window, made.rates(0)).tokens == sum(len(batch.texts[0].ids) for batch in own)
