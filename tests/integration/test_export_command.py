"""`weft export` as a user types it, and its ONNX folder in the place of a model."""

import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests.exported import write_model
from tests.integration.command import weft
from tests.tiny import write_rows
from weft.export import export

TASKS = {
    "sentiment": {"like": "sentiment"},
    "paraphrase": {"like": "paraphrase"},
    "similarity": {"like": "similarity", "head": "cosine"},
}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("command"), TASKS, segments=False)


@pytest.fixture(scope="module")
def onnx(model: Path) -> Path:
    out = model.parent / "onnx"
    done = weft("export", model, "--to", "onnx", "-o", out)
    assert "sentiment: " in done.stdout
    assert "single.onnx (largest difference from the model" in done.stdout
    assert done.stderr == ""
    return out


def test_an_onnx_folder_answers_like_the_model(model: Path, onnx: Path, tmp_path: Path) -> None:
    names = {"single.onnx", "cross.onnx", "bi.onnx", "bi-heads.onnx"}
    assert {path.name for path in onnx.glob("*.onnx")} == names
    assert {"weft.json", "tokenizer.json", "tokenizer_config.json", "README.md"} <= {
        path.name for path in onnx.iterdir()
    }
    loaded = package.load(model)
    before, after = loaded.evaluate(), json.loads(weft("evaluate", onnx, "--json").stdout)
    assert after["overall"] == pytest.approx(before.overall, abs=1e-6)
    for task, scores in before.scores.items():
        assert after["tasks"][task] == pytest.approx(scores, abs=1e-4)
    (answer,) = json.loads(weft("predict", onnx, "paraphrase", "the cat", "a dog", "--json").stdout)
    (expected,) = loaded.predict("paraphrase", ["the cat"], ["a dog"])
    assert answer["label"] == expected.label
    assert answer["probabilities"] == pytest.approx(expected.probabilities, abs=1e-4)
    source = write_rows(tmp_path / "texts.csv", [{"text": "a warm film"}, {"text": "a"}], delimiter=",")
    weft("embed", onnx, "--input", source, "--output", tmp_path / "vectors.npy")
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), loaded.embed(["a warm film", "a"]), atol=1e-5)


def test_int8_is_smaller_and_scored_before_and_after(model: Path, onnx: Path, tmp_path: Path) -> None:
    done = weft("export", model, "--to", "onnx", "-o", tmp_path / "int8", "--quantize", "int8")
    assert "before" in done.stdout
    assert "int8" in done.stdout
    saved = json.loads((tmp_path / "int8" / "weft.json").read_text())["export"]
    assert saved["quantize"] == "int8"
    assert "Weights are int8: the overall dev score was" in (tmp_path / "int8" / "README.md").read_text()
    full, small = (package.load(folder).evaluate() for folder in (onnx, tmp_path / "int8"))
    assert saved["dev"]["fp32"] == {"tasks": full.scores, "overall": full.overall}
    assert saved["dev"]["int8"] == {"tasks": small.scores, "overall": small.overall}
    sizes = [sum(file.stat().st_size for file in folder.glob("*.onnx")) for folder in (onnx, tmp_path / "int8")]
    assert sizes[1] < sizes[0]
    vectors = [package.load(folder).embed(["a lovely warm film"]) for folder in (onnx, tmp_path / "int8")]
    assert not np.array_equal(*vectors)
    np.testing.assert_allclose(*vectors, atol=0.2)


def test_what_is_skipped_is_said(model: Path, tmp_path: Path) -> None:
    done = weft("export", model, "--to", "sentence-transformers", "-o", tmp_path / "st")
    assert f"paraphrase: {tmp_path / 'st' / 'paraphrase'}/: CrossEncoder" in done.stdout
    assert f"similarity: {tmp_path / 'st' / 'similarity'}/: SentenceTransformer" in done.stdout
    assert (
        "sentiment: skipped, reads one text, and this library is for pairs; use --to transformers or onnx"
        in done.stdout
    )
    card = (tmp_path / "st" / "README.md").read_text()
    assert "- sentiment: reads one text" in card


def test_every_task_goes_to_transformers(model: Path, tmp_path: Path) -> None:
    from transformers import pipeline

    out = tmp_path / "out"
    done = weft("export", model, "--to", "transformers", "-o", out)
    how = "AutoModelForSequenceClassification"
    assert (
        f'sentiment: {out}/sentiment/: {how} with trust_remote_code=True (pooling = "cls" is not BERT\'s own)'
        in done.stdout
    )
    assert f"paraphrase: {out}/paraphrase/: {how}\n" in done.stdout
    assert f'similarity: {out}/similarity/: {how} with trust_remote_code=True (reading = "bi"' in done.stdout
    assert f"the body: {out}/body/: AutoModel\n" in done.stdout
    assert "skipped" not in done.stdout
    compare = pipeline("text-classification", model=str(out / "similarity"), trust_remote_code=True)
    (ours,) = package.load(model).predict("similarity", ["the cat"], ["a dog"])
    theirs = compare({"text": "the cat", "text_pair": "a dog"})
    assert theirs == {"label": "similarity", "score": pytest.approx(ours.score, abs=1e-5)}


def test_if_nothing_fits_nothing_is_written_and_another_target_is_named(tiny: Path, tmp_path: Path) -> None:
    folder = write_model(tiny, tmp_path, {"sentiment": {"like": "sentiment", "pooling": "mean"}})
    done = weft("export", folder, "--to", "sentence-transformers", "-o", tmp_path / "out", code=2)
    assert "none of the tasks can be written" in done.stderr
    assert "sentiment: reads one text, and this library is for pairs; use --to transformers or onnx" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"body", "model"}
    done = weft("export", folder, "--to", "transformers", "-o", tmp_path / "out")
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(
    ("to", "quantize", "message"),
    [
        ("tflite", None, "--to tflite: expected one of transformers, sentence-transformers, onnx"),
        ("onnx", "int4", "--quantize int4: expected int8"),
        ("transformers", "int8", "--quantize int8: is for --to onnx"),
    ],
)
def test_options_that_make_no_sense(model: Path, tmp_path: Path, to: str, quantize: str | None, message: str) -> None:
    with pytest.raises(package.UserError, match=message):
        export(model, to, tmp_path / "out", quantize=quantize)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_make_no_sense(model: Path, onnx: Path, tmp_path: Path) -> None:
    with pytest.raises(package.UserError, match="already exists"):
        export(model, "onnx", onnx)
    with pytest.raises(package.UserError, match="is not a weft model"):
        export(tmp_path, "onnx", tmp_path / "out")
    with pytest.raises(package.UserError, match="use the run folder that it was exported from"):
        export(onnx, "transformers", tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(package.UserError, match="cannot be written"):
        export(model, "transformers", tmp_path / "file" / "out")
    with pytest.raises(package.UserError, match="runs on the CPU"):
        package.load(onnx, "cuda")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_damaged_graph_is_named(onnx: Path, tmp_path: Path) -> None:
    for path in onnx.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "single.onnx").write_bytes((onnx / "single.onnx").read_bytes()[:-100])
    with pytest.raises(package.UserError, match="single.onnx: is damaged or belongs to another model"):
        package.load(tmp_path)


def test_a_missing_extra_is_named(model: Path, onnx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(package.UserError, match=r'pip install "weft\[export\]"'):
        package.load(onnx)
    with pytest.raises(package.UserError, match=r'onnxruntime is not installed; run: pip install "weft\[export\]"'):
        export(model, "onnx", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
