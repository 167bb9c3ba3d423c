"""What holds for every family of bodies, the day it is listed: readings, a whole run, and every way out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.exported import write_model
from tests.families import SMALL, write_family
from tests.texts import MIXED_SENTENCES
from weft.bodies.registry import FAMILIES
from weft.bodies.weights import load_body, write_config
from weft.data.readings import Reader, TokenSequence, pack
from weft.data.tokenizer import Tokenizer
from weft.export import export
from weft.foundation.errors import UserError
from weft.tasks.store import body_tensors, save_tensors

MAX_LENGTH = 40
TEXTS = [*MIXED_SENTENCES[:9], " ".join(MIXED_SENTENCES)]
SECONDS = TEXTS[::-1]


@dataclass(frozen=True)
class Made:
    family: Any
    folder: Path
    model: weft.Model


@pytest.fixture(scope="module", params=FAMILIES)
def made(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A model with a task of every reading; the one on single texts uses the family's pooler, if it has one."""
    family = FAMILIES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    body = write_family(folder / "body", request.param)
    own = "pooler" if family.has_pooler else "cls"
    tasks = {
        "single": {"like": "sentiment", "pooling": own},
        "cross": {"like": "paraphrase", "pooling": own},
        "concat": {"like": "paraphrase", "reading": "concat", "pooling": "mean"},
        "bi": {"like": "similarity", "head": "difference", "layer": 2},
        "mix": {"like": "paraphrase", "pooling": "max", "layer": "mix"},
    }
    out = write_model(tiny, folder, tasks, body=str(body), max_length=MAX_LENGTH)
    return Made(family, out, weft.load(out))


def sides(made: Made, task: str) -> list[list[str]]:
    return [TEXTS] if task == "single" else [TEXTS, SECONDS]


def answers(made: Made, model: weft.Model, task: str) -> np.ndarray:
    found = model.predict(task, *sides(made, task))
    return np.array([[p.score] if p.probabilities is None else list(p.probabilities.values()) for p in found])


@pytest.mark.parametrize("model_type", FAMILIES)
def test_readings_are_those_of_the_familys_own_tokenizer(tmp_path: Path, model_type: str) -> None:
    """Special tokens, token types and cutting, as `transformers` has them for one text and for two."""
    from transformers import AutoTokenizer

    write_family(tmp_path, model_type)
    tokenizer = Tokenizer.load(tmp_path)
    tokenizer.save(tmp_path, MAX_LENGTH, types=True)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    encoded = [np.array(ids, dtype=np.int32) for ids in tokenizer.encode(TEXTS)]
    for reading in ("single", "cross"):
        reader = Reader(reading, tokenizer.template, MAX_LENGTH)
        for number, text in enumerate(TEXTS):
            pair = reading == "cross"
            ((ids, of_second, *_),) = reader.sequences(encoded[number], encoded[-1 - number] if pair else None)
            expected = theirs(text, SECONDS[number] if pair else None, truncation=True)
            assert ids.tolist() == expected["input_ids"]
            assert of_second == sum(expected["token_type_ids"])
            assert len(ids) <= MAX_LENGTH
    assert theirs.pad_token_id == load_body(tmp_path).shape.pad


def test_the_model_folder_opens_in_transformers(made: Made) -> None:
    """Vectors of texts, tokenized and padded there, are those of weft to 1e-6."""
    from transformers import AutoModel, AutoTokenizer

    theirs, loading = AutoModel.from_pretrained(made.folder, output_loading_info=True)
    assert not any(loading.values()), loading
    assert type(theirs).__name__ == made.family.architecture
    inputs = AutoTokenizer.from_pretrained(made.folder)(
        TEXTS, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )
    with torch.no_grad():
        hidden = theirs.eval()(**inputs, output_hidden_states=True).hidden_states[2]
    mask = inputs["attention_mask"][:, :, None]
    vectors = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    np.testing.assert_allclose(made.model.embed(TEXTS, "bi"), vectors, rtol=0, atol=1e-6)


def test_transformers_gives_the_same_answers(made: Made, tmp_path: Path) -> None:
    """By the family's own class where it has the same layers, else by code of our own."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    outcome = export(made.folder, "transformers", tmp_path / "out")
    for task in made.model.tasks:
        folder = tmp_path / "out" / task
        custom = (folder / "modeling_weft.py").exists()
        assert custom != (made.family.classifier is not None and task in ("single", "cross")), outcome.written[task]
        theirs, loading = AutoModelForSequenceClassification.from_pretrained(
            folder, trust_remote_code=custom, output_loading_info=True
        )
        assert not any(loading.values()), loading
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=custom)
        inputs = tokenizer(*sides(made, task), padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            logits = theirs.eval()(**inputs).logits
        got = logits if theirs.config.problem_type == "regression" else logits.softmax(dim=1)
        expected = answers(made, made.model, task)
        assert expected.std(axis=0).max() > 1e-4, "answers that are all alike would agree with anything"
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_sentence_transformers_gives_the_same_vectors_and_scores(made: Made, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    outcome = export(made.folder, "sentence-transformers", tmp_path / "out")
    assert "reads all layers" in outcome.skipped["mix"]
    if made.family.can_cut(2, made.model.network.body.shape):
        encoder = SentenceTransformer(str(tmp_path / "out" / "bi"), device="cpu", local_files_only=True)
        np.testing.assert_allclose(encoder.encode(TEXTS), made.model.embed(TEXTS, "bi"), rtol=1e-5, atol=1e-5)
    else:
        assert "is not the last state of a shorter" in outcome.skipped["bi"]
    for task in ("cross", "concat"):
        scorer = CrossEncoder(str(tmp_path / "out" / task), device="cpu", local_files_only=True)
        got = scorer.predict(list(zip(TEXTS, SECONDS, strict=True)), apply_softmax=True)
        np.testing.assert_allclose(got, answers(made, made.model, task), rtol=1e-5, atol=1e-5)


LATEST = ("modernbert", "deberta-v2")
"""the families whose graphs have the most of their own; a graph takes seconds to trace"""


@pytest.mark.parametrize(
    "model_type", [name if name in LATEST else pytest.param(name, marks=pytest.mark.long) for name in FAMILIES]
)
def test_onnx_gives_the_same_answers(tiny: Path, tmp_path: Path, model_type: str) -> None:
    pytest.importorskip("onnxruntime")
    body = write_family(tmp_path / "body", model_type)
    tasks = {
        "cross": {"like": "paraphrase", "pooling": "cls"},
        "mix": {"like": "paraphrase", "layer": "mix", "pooling": "mean"},
    }
    folder = write_model(tiny, tmp_path, tasks, body=str(body), max_length=MAX_LENGTH)
    made = Made(FAMILIES[model_type], folder, weft.load(folder))
    assert export(folder, "onnx", tmp_path / "fp32").skipped == {}
    assert export(folder, "onnx", tmp_path / "int8", quantize="int8").quantization is not None
    for precision, tolerance in (("fp32", 1e-4), ("int8", 0.15)):
        model = weft.load(tmp_path / precision)
        for task in tasks:
            expected = answers(made, made.model, task)
            np.testing.assert_allclose(answers(made, model, task), expected, rtol=tolerance, atol=tolerance)
    sizes = [sum(f.stat().st_size for f in (tmp_path / precision).glob("*.onnx")) for precision in ("fp32", "int8")]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("model_type", [name for name, family in FAMILIES.items() if not family.has_pooler])
def test_a_pooler_that_the_family_has_not(tiny: Path, tmp_path: Path, model_type: str) -> None:
    body = write_family(tmp_path / "body", model_type)
    with pytest.raises(UserError, match=f"the body is a {FAMILIES[model_type].title}, which has no pooler of its own"):
        write_model(tiny, tmp_path, {"cross": {"like": "paraphrase"}}, body=str(body))


@pytest.mark.parametrize("model_type", FAMILIES)
def test_token_types_that_the_body_has_not(tiny: Path, tmp_path: Path, model_type: str) -> None:
    body = write_family(tmp_path / "body", model_type)
    tasks = {"cross": {"like": "paraphrase", "pooling": "cls"}}
    if load_body(body).has_segments:
        assert weft.load(write_model(tiny, tmp_path, tasks, body=str(body), segments=False)).tasks == ["cross"]
    else:
        with pytest.raises(UserError, match="without token types, which has nothing to leave out"):
            write_model(tiny, tmp_path, tasks, body=str(body), segments=False)


def test_sizes_are_small() -> None:
    assert max(config.get("max_position_embeddings", 0) for config in SMALL.values()) - 2 == MAX_LENGTH


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_body_is_cut_to_its_first_layers(tmp_path: Path, model_type: str) -> None:
    """The states of the first layers are those of the whole body; saved, it opens in transformers with two layers."""
    from transformers import AutoModel

    whole, cut = (load_body(write_family(tmp_path, model_type), layers=layers).eval() for layers in (None, 2))
    encoded = pack([TokenSequence(np.array([7, 8, 9, 10, 11], dtype=np.int64))])
    with torch.no_grad():
        states, first = whole(encoded), cut(encoded)
    assert len(first) == 3
    kept = 3 if cut.final is None else 2  # some families normalize the output of the last layer
    assert all(torch.equal(one, two) for one, two in zip(first[:kept], states[:kept], strict=True))
    folder = tmp_path / "cut"
    folder.mkdir()
    write_config(cut.shape, folder)
    save_tensors(body_tensors(cut), folder / "model.safetensors")
    theirs, loading = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values()), loading
    with torch.no_grad():
        output = theirs(input_ids=encoded.ids[None]).last_hidden_state[0]
    torch.testing.assert_close(first[-1], output, atol=1e-6, rtol=0)
    with pytest.raises(UserError, match="layers: found 9, but the body has"):
        load_body(tmp_path, layers=9)
