"""`weft serve --engine`: exported on the fly, once for each model."""

import shutil
from pathlib import Path

import pytest

import weft
from tests.exported import TEXTS, write_model
from tests.integration.command import weft as run_weft
from tests.integration.test_serve import close
from tests.serving import Server

TASKS = {"mood": {"like": "sentiment"}, "near": {"like": "similarity", "range": [0, 5], "head": "cosine"}}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "exports"


def written(cache: Path) -> dict[Path, int]:
    """Every file of the cache and when it was written."""
    return {file: file.stat().st_mtime_ns for file in cache.rglob("*") if file.is_file()}


def test_an_export_is_made_once(model: Path, cache: Path, tmp_path: Path) -> None:
    expected = [one.as_dict() for one in weft.load(model, "cpu").predict("mood", TEXTS)]
    with Server(model, tmp_path / "log", "--engine", "onnx") as server:
        for one, other in zip(server.post("/v1/predict/mood", {"text": TEXTS})["answers"], expected, strict=True):
            assert close(one, other)
        assert server.stop() == 0
    before = written(cache)
    assert {file.suffix for file in before} >= {".onnx", ".json"}
    assert {oct(folder.stat().st_mode & 0o777) for folder in cache.iterdir()} == {"0o700"}
    with Server(model, tmp_path / "log", "--engine", "onnx", "--workers", 2) as server:
        server.post("/v1/predict/mood", {"text": TEXTS})
        assert server.stop() == 0
    assert written(cache) == before


def test_a_damaged_export_is_made_again(model: Path, cache: Path, tmp_path: Path) -> None:
    from weft.export.engines import engine_folder

    made = engine_folder(model, "onnx")
    (made / "single.onnx").write_bytes(b"broken")
    assert engine_folder(model, "onnx") == made
    assert (made / "single.onnx").stat().st_size > 1000
    assert [folder.name for folder in cache.iterdir()] == [made.name]  # nothing temporary is left
    other = tmp_path / "other"
    shutil.copytree(model, other)
    assert engine_folder(other, "onnx") == made  # the key is the content, not the path


def test_int8(model: Path, cache: Path, tmp_path: Path) -> None:
    """Without the dev files of the recipe: scores are not computed."""
    with Server(model, tmp_path / "log", "--engine", "onnx-int8") as server:
        answers = server.post("/v1/predict/mood", {"text": TEXTS})["answers"]
        assert [set(one["probabilities"]) for one in answers]
        assert server.stop() == 0
    (made,) = cache.iterdir()
    assert weft.load(made).predict("mood", TEXTS[0]).as_dict()["label"] == answers[0]["label"]
    said = run_weft("serve", made, "--engine", "onnx", code=2).stderr
    assert "is an export for onnx-int8; use the run that it came from" in said


def test_what_cannot_be_exported(model: Path, tiny: Path, cache: Path, tmp_path: Path) -> None:
    tasks = {"mood": {"like": "sentiment", "long_texts": "windows"}}
    windows = write_model(tiny, tmp_path, tasks)
    done = run_weft("serve", windows, "--port", 0, "--engine", "onnx", "--workers", 2, code=2)
    assert "--engine onnx: 'mood' has long_texts" in done.stderr
    assert "`--engine torch` serves every model" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(cache.iterdir()) == []
    assert "expected one of torch, onnx, onnx-int8" in run_weft("serve", model, "--engine", "tf", code=2).stderr
