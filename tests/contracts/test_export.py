"""Every reading, pooling, head and loss on its way out: there it agrees with the model.

`transformers` and ONNX take every task; `sentence-transformers` refuses what it cannot express, and says why.
"""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import weft
from tests.contracts.registry import of_rows, variants
from tests.exported import SECONDS, TEXTS, cosines, write_model
from weft.data.readings import Reading
from weft.export import Outcome, export
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.pooling import PoolingConfig

# a number in its own units: what every head may give
NUMBER = {"like": "similarity", "scale": False, "range": [0, 5], "pooling": "mean"}
LOSSES: dict[str, dict[str, Any]] = {
    "mse": {"like": "similarity", "reading": "cross", "pooling": "pooler"},
    "cosent": NUMBER | {"head": "cosine"},
    "angle": NUMBER | {"head": "vectors"},
    "in-batch-negatives": {"like": "matches", "pooling": "mean"},
    "cosine-embedding": {"like": "paraphrase", "reading": "bi", "head": "cosine"},
}


def all_tasks() -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = {}
    for reading in get_args(Reading):
        start = {"like": "sentiment"} if reading == "single" else {"like": "paraphrase", "reading": reading}
        tasks[f"reading-{reading}"] = start | {"pooling": "pooler"}
    for name in of_rows(PoolingConfig):
        tasks[f"pooling-{name}-bi"] = {"like": "similarity", "pooling": name, "head": "cosine"}
        tasks[f"pooling-{name}-cross"] = {"like": "paraphrase", "pooling": name, "layer": 1}
    tasks["pooling-lstm-both"] = {"like": "similarity", "pooling": {"name": "lstm", "bidirectional": True}}
    tasks["layer-mix"] = {"like": "paraphrase", "layer": "mix"}
    tasks["layer-mix-bi"] = {"like": "similarity", "layer": "mix", "pooling": "attention"}
    tasks["layer-embeddings"] = {"like": "sentiment", "layer": 0, "pooling": "mean"}
    for name, config in variants(HeadConfig).items():
        loss = {"loss": "angle"} if config.gives_vectors else {}  # type: ignore[attr-defined]
        tasks[f"head-{name}-bi"] = NUMBER | {"head": name} | loss
    for name in ("hidden", "mlp"):
        tasks[f"head-{name}-cross"] = NUMBER | {"reading": "cross", "head": name}
    for name in of_rows(LossConfig):
        start = LOSSES.get(name, {"like": "paraphrase", "pooling": "pooler"})
        tasks[f"loss-{name}"] = start | {"loss": name}
        if name not in LOSSES:
            tasks[f"loss-{name}-mean"] = start | {"loss": name, "pooling": "mean"}
    # one loss on what several heads and kinds of labels give it
    tasks["loss-mse-scaled"] = {"like": "similarity", "head": "difference", "range": [-2, 5]}
    close = {"head": "cosine", "loss": "cosine-embedding", "range": [-1, 5]}
    tasks["loss-cosine-embedding-number"] = NUMBER | close
    tasks["loss-cosine-embedding-scaled"] = tasks["loss-cosine-embedding-number"] | {"scale": True}
    tasks["loss-binary-cross-entropy-probability"] = {
        "like": "paraphrase",
        "reading": "bi",
        "head": "scaled-cosine",
        "loss": "binary-cross-entropy",
    }
    probability = tasks["loss-binary-cross-entropy-probability"]
    tasks["loss-binary-cross-entropy-as-logit"] = probability | {
        "loss": {"name": "binary-cross-entropy", "as_logit": True}
    }
    # heads and poolings with other settings than their own
    scaled = {"name": "scaled-cosine", "start": 1.5, "gain": 4.0}
    tasks["head-scaled-cosine-gain"] = NUMBER | {"head": scaled}
    tasks["head-scaled-cosine-relu"] = NUMBER | {"head": scaled | {"units": 6, "start": 8.0}}
    tasks["head-scaled-cosine-layer"] = NUMBER | {"head": scaled | {"units": 6, "activation": "none"}}
    tasks["head-shared-pair-alone"] = NUMBER | {"head": {"name": "shared-pair", "shared": False, "size": 5}}
    tasks["head-mlp-deep"] = NUMBER | {"head": {"name": "mlp", "sizes": [7, 5], "dropout": 0.2}}
    tasks["kind-multilabel-mean"] = {"like": "sentiment", "kind": "multilabel", "pooling": "mean"}
    tasks["kind-ordinal-concat"] = {"like": "paraphrase", "kind": "ordinal", "reading": "concat", "pooling": "max"}
    tasks["kind-multilabel"] = {"like": "sentiment", "kind": "multilabel", "pooling": "pooler"}
    tasks["kind-multilabel-cross"] = {"like": "paraphrase", "kind": "multilabel"}
    return tasks


TASKS = all_tasks()


@pytest.fixture(scope="module")
def model_folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("all"), TASKS)


@pytest.fixture(scope="module")
def model(model_folder: Path) -> weft.Model:
    return weft.load(model_folder)


def tolerance(task: str) -> float:
    """The recurrence of an LSTM amplifies the rounding by which torch's kernels for packed and plain batches differ."""
    return 1e-4 if "lstm" in task else 1e-5


def exported(model_folder: Path, to: str) -> tuple[Path, Outcome]:
    out = model_folder.parent / to
    outcome = export(model_folder, to, out)
    assert {*outcome.written, *outcome.skipped} - {"the body"} == set(TASKS)
    return out, outcome


def answers(model: weft.Model, task: str) -> np.ndarray:
    """[n, classes] or [n, 1]"""
    second = None if model.config.tasks[task].reading == "single" else SECONDS
    found = model.predict(task, TEXTS, second)
    return np.array([[p.score] if p.probabilities is None else list(p.probabilities.values()) for p in found])


@pytest.fixture(scope="module")
def onnx(model_folder: Path) -> weft.Model:
    pytest.importorskip("onnxruntime")
    out, outcome = exported(model_folder, "onnx")
    assert outcome.skipped == {}
    return weft.load(out)


@pytest.mark.parametrize("task", TASKS)
def test_onnx_agrees(model: weft.Model, onnx: weft.Model, task: str) -> None:
    expected = answers(model, task)
    np.testing.assert_allclose(answers(onnx, task), expected, rtol=1e-4, atol=1e-4)
    assert expected.std(axis=0).max() > 1e-3, "answers that are all alike would agree with anything"
    vectors = model.embed(TEXTS, task)
    assert cosines(onnx.embed(TEXTS, task), vectors).min() > 0.9999
    one = [onnx.embed([text], task)[0] for text in TEXTS]
    np.testing.assert_allclose(one, vectors, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def transformers(model_folder: Path) -> tuple[Path, Outcome]:
    return exported(model_folder, "transformers")


@pytest.mark.parametrize("task", TASKS)
def test_transformers_agrees(model: weft.Model, transformers: tuple[Path, Outcome], task: str) -> None:
    from transformers import pipeline

    out, outcome = transformers
    own_code = "trust_remote_code=True" in outcome.written[task]
    assert (out / task / "modeling_weft.py").exists() == own_code
    classify = pipeline(
        "text-classification", model=str(out / task), truncation=True, top_k=None, trust_remote_code=own_code
    )
    single = model.config.tasks[task].reading == "single"
    inputs: Any = TEXTS if single else [{"text": a, "text_pair": b} for a, b in zip(TEXTS, SECONDS, strict=True)]
    expected = answers(model, task)
    assert expected.std(axis=0).max() > 1e-3, "answers that are all alike would agree with anything"
    names = list(model.labels[task].names) or [task]
    for batch_size in (1, 4):
        found = classify(inputs, batch_size=batch_size)
        got = [[next(e["score"] for e in entry if e["label"] == name) for name in names] for entry in found]
        np.testing.assert_allclose(got, expected, rtol=tolerance(task), atol=tolerance(task))


@pytest.mark.parametrize("task", TASKS)
def test_transformers_gives_the_vectors_of_a_task(
    model: weft.Model, transformers: tuple[Path, Outcome], task: str
) -> None:
    from transformers import AutoModel, AutoTokenizer

    out, outcome = transformers
    if "trust_remote_code=True" not in outcome.written[task]:
        return
    encoder, info = AutoModel.from_pretrained(out / task, trust_remote_code=True, output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    inputs = AutoTokenizer.from_pretrained(out / task, trust_remote_code=True)(
        TEXTS, padding=True, truncation=True, return_tensors="pt"
    )
    with torch.no_grad():
        vectors = encoder(**inputs).pooler_output.numpy()
    np.testing.assert_allclose(vectors, model.embed(TEXTS, task), rtol=tolerance(task), atol=tolerance(task))


@pytest.fixture(scope="module")
def sentence_transformers(model_folder: Path) -> tuple[Path, Outcome]:
    return exported(model_folder, "sentence-transformers")


@pytest.mark.parametrize("task", TASKS)
def test_sentence_transformers_agrees_or_refuses(
    model: weft.Model, sentence_transformers: tuple[Path, Outcome], task: str
) -> None:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    out, outcome = sentence_transformers
    if task in outcome.skipped:
        assert "use --to " in outcome.skipped[task]
        assert not (out / task).exists()
        return
    if model.config.tasks[task].reading == "bi":
        encoder = SentenceTransformer(str(out / task), device="cpu", local_files_only=True)
        expected = model.embed(TEXTS, task)
        for batch_size in (1, 4):
            got = encoder.encode(TEXTS, batch_size=batch_size)
            assert cosines(got, expected).min() > 0.9999
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
        return
    scorer = CrossEncoder(str(out / task), device="cpu", local_files_only=True)
    expected = answers(model, task)
    as_logits = model.network.task(task).loss.activation == "softmax"
    for batch_size in (1, 4):
        pairs = list(zip(TEXTS, SECONDS, strict=True))
        got = scorer.predict(pairs, batch_size=batch_size, apply_softmax=as_logits)
        assert scorer.num_labels == (got.shape[1] if got.ndim == 2 else 1)
        np.testing.assert_allclose(got, expected if got.ndim == 2 else expected[:, -1], rtol=1e-4, atol=1e-4)


def test_what_fits_where(transformers: tuple[Path, Outcome], sentence_transformers: tuple[Path, Outcome]) -> None:
    """The tests above would pass if everything were refused, or had code of its own."""
    assert transformers[1].skipped == {}
    native = {name for name, how in transformers[1].written.items() if "trust_remote_code" not in how}
    wanted = {"reading-single", "reading-cross", "reading-concat", "kind-multilabel", "kind-multilabel-cross"}
    wanted |= {"loss-cross-entropy", "loss-binary-cross-entropy", "loss-ordinal-log", "loss-mse", "the body"}
    assert wanted <= native
    assert not {"reading-bi", "layer-mix", "loss-dual-objective", "pooling-mean-cross", "head-mlp-cross"} & native
    # advice leads to targets that write every task
    assert all(
        reason.endswith("; use --to transformers or onnx") for reason in sentence_transformers[1].skipped.values()
    )
    wanted = {f"pooling-{name}-{reading}" for name in ("cls", "pooler", "mean", "max") for reading in ("bi", "cross")}
    wanted |= {"reading-cross", "reading-concat", "head-hidden-cross", "head-mlp-cross", "loss-mse"}
    assert wanted <= set(sentence_transformers[1].written)
    assert {"reading-single", "pooling-lstm-bi", "layer-mix"} <= set(sentence_transformers[1].skipped)


@pytest.mark.parametrize("name", variants(LossConfig))
def test_the_function_that_a_loss_names_is_how_it_reads(name: str) -> None:
    from weft.kinds.labels import Labels

    kinds = [
        Labels("classification", ("a", "b")),
        Labels("multilabel", ("a", "b", "c")),
        Labels("regression", scaled=True),
    ]
    functions = {"softmax": lambda o: o.softmax(1), "sigmoid": torch.sigmoid, "identity": lambda o: o}
    for labels in kinds:
        try:
            loss = variants(LossConfig)[name]().build(labels, "t", None)  # type: ignore[attr-defined]
        except weft.UserError:
            continue
        if loss.activation is None:
            continue
        output = 3 * torch.randn(6, loss.outputs)
        reading = loss.read(output).reshape(6, -1)
        expected = functions[loss.activation](output)
        torch.testing.assert_close(reading[:, -expected.shape[1] :], expected)
