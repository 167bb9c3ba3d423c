"""Models with adapters on their way out: merged, unmerged in ONNX, as PEFT folders, or rejected with a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.exported import SECONDS, TEXTS, write_model
from weft.export import export

TASKS = {
    "mood": {"like": "sentiment", "pooling": "pooler"},
    "same": {"like": "paraphrase"},
    "near": {"like": "similarity", "pooling": "mean", "head": "cosine", "scale": False},
}


def model_with(tiny: Path, folder: Path, **adapter: Any) -> Path:
    wide = {"matrices": "all"} if adapter["name"] == "lora" else {}
    return write_model(tiny, folder, TASKS, adapter=wide | adapter)


def scores(model: weft.Model, task: str) -> np.ndarray:
    second = None if task == "mood" else SECONDS
    found = model.predict(task, TEXTS, second)
    return np.array([[p.score] if p.probabilities is None else list(p.probabilities.values()) for p in found])


@pytest.mark.parametrize("per_task", [False, True])
def test_lora_is_merged_for_transformers(tiny: Path, tmp_path: Path, per_task: bool) -> None:
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    folder = model_with(tiny, tmp_path, name="lora", per_task=per_task)
    model, out = weft.load(folder), tmp_path / "out"
    outcome = export(folder, "transformers", out)
    assert outcome.skipped == {}
    for task in ("mood", "same"):  # the library's own class, and custom code
        theirs = AutoModelForSequenceClassification.from_pretrained(out / task, trust_remote_code=task == "same").eval()
        tokenizer = AutoTokenizer.from_pretrained(out / task, trust_remote_code=task == "same")
        texts = (TEXTS,) if task == "mood" else (TEXTS, SECONDS)
        with torch.no_grad():
            logits = theirs(**tokenizer(*texts, padding=True, truncation=True, return_tensors="pt")).logits
        np.testing.assert_allclose(logits.softmax(1), scores(model, task), atol=1e-5)
    body = AutoModel.from_pretrained(out / "body").eval()
    inputs = AutoTokenizer.from_pretrained(out / "body")(TEXTS[:3], padding=True, return_tensors="pt")
    with torch.no_grad():
        states = body(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    means = ((states * mask).sum(1) / mask.sum(1)).numpy()
    same = np.abs(means - model.embed(TEXTS[:3], task="near")).max() < 1e-5
    assert same != per_task  # a shared adapter is merged into the body, adapters of tasks are not
    assert ("without adapters" in outcome.written["the body"]) == per_task


def test_lora_is_merged_for_sentence_transformers(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = model_with(tiny, tmp_path, name="lora", per_task=True)
    export(folder, "sentence-transformers", tmp_path / "out")
    theirs = SentenceTransformer(str(tmp_path / "out" / "near"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, weft.load(folder).embed(TEXTS, task="near"), atol=1e-5)


@pytest.mark.parametrize(("name", "per_task"), [("lora", False), ("lora", True), ("bottleneck", True), ("pal", True)])
def test_onnx_holds_every_adapter(tiny: Path, tmp_path: Path, name: str, per_task: bool) -> None:
    pytest.importorskip("onnxruntime")
    folder = model_with(tiny, tmp_path, name=name, per_task=per_task)
    export(folder, "onnx", tmp_path / "out")
    model, exported = weft.load(folder), weft.load(tmp_path / "out")
    for task in TASKS:
        np.testing.assert_allclose(scores(exported, task), scores(model, task), atol=1e-4)


def test_bottlenecks_and_pals_are_rejected_where_no_class_has_them(tiny: Path, tmp_path: Path) -> None:
    folder = model_with(tiny, tmp_path, name="pal")
    outcome = export(folder, "transformers", tmp_path / "out")
    assert outcome.skipped.keys() == TASKS.keys()
    assert outcome.skipped["mood"].startswith('adapter = "pal" adds layers, which no class of this library has')
    assert outcome.written == {"the body": "body/: AutoModel, without adapters"}
    with pytest.raises(weft.UserError, match='near: adapter = "pal" adds layers, .*; use --to onnx'):
        export(folder, "sentence-transformers", tmp_path / "other")
    with pytest.raises(weft.UserError, match='--to peft: adapter = "pal" is not LoRA'):
        export(folder, "peft", tmp_path / "third")


@pytest.mark.parametrize("per_task", [False, True])
def test_peft_opens_our_folders(tiny: Path, tmp_path: Path, per_task: bool) -> None:
    from peft import PeftModel
    from transformers import AutoModel, AutoTokenizer

    folder = model_with(tiny, tmp_path, name="lora", per_task=per_task)
    out = tmp_path / "out"
    outcome = export(folder, "peft", out)
    names = {*TASKS} if per_task else {"the adapter of all tasks"}
    assert outcome.written.keys() == {*names, "the body"}
    model = weft.load(folder)
    theirs = PeftModel.from_pretrained(
        AutoModel.from_pretrained(out / "body"), out / ("near" if per_task else "adapter")
    )
    inputs = AutoTokenizer.from_pretrained(out / "body")(TEXTS[:4], padding=True, return_tensors="pt")
    with torch.no_grad():
        states = theirs.eval()(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    np.testing.assert_allclose((states * mask).sum(1) / mask.sum(1), model.embed(TEXTS[:4], task="near"), atol=1e-5)


def test_a_model_without_adapters_has_nothing_for_peft(tiny: Path, tmp_path: Path) -> None:
    folder = write_model(tiny, tmp_path, {"mood": {"like": "sentiment"}})
    with pytest.raises(weft.UserError, match="--to peft: the model has no adapter"):
        export(folder, "peft", tmp_path / "out")
