"""Exports of tasks that read more of a long text than its beginning: exact, or refused with a reason."""

from pathlib import Path

import numpy as np
import pytest

from tests.exported import TEXTS, write_model
from weft.export import export
from weft.foundation.errors import UserError
from weft.inference.model import load

SPLIT = {"like": "sentiment", "long_texts": "head-tail", "pooling": "mean"}
WINDOWS = {"like": "similarity", "long_texts": "windows"}
PLAIN = {"like": "sentiment"}


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = {"split": SPLIT, "windows": WINDOWS, "plain": PLAIN}
    return write_model(tiny, tmp_path_factory.mktemp("long"), tasks, body=str(tiny / "body"), max_length=16)


def test_transformers_writes_the_other_tasks(folder: Path, tmp_path: Path) -> None:
    outcome = export(folder, "transformers", tmp_path / "out")
    assert set(outcome.written) == {"plain", "the body"}
    assert outcome.skipped["split"] == (
        'long_texts = "head-tail": the tokenizers of other libraries read only the beginning of a long text; '
        "use the model folder with weft (predict, serve) or --to onnx"
    )
    assert outcome.skipped["windows"].endswith("use the model folder with weft (predict, serve)")


def test_sentence_transformers_has_no_such_task(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match='windows: long_texts = "windows": the tokenizers of other libraries'):
        export(folder, "sentence-transformers", tmp_path / "out")


def test_onnx_refuses_windows(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'windows' has long_texts = .*answers each sequence by itself.*head-tail"):
        export(folder, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_onnx_reads_head_and_tail_as_the_model_does(tiny: Path, tmp_path: Path) -> None:
    folder = write_model(tiny, tmp_path, {"split": SPLIT}, body=str(tiny / "body"), max_length=16)
    outcome = export(folder, "onnx", tmp_path / "out")
    assert outcome.written["split"].endswith(
        "; of a text with more than 16 tokens the beginning (25% of the tokens) and the end are read"
    )
    ours, theirs = (load(path).predict("split", TEXTS) for path in (folder, tmp_path / "out"))
    for one, two in zip(ours, theirs, strict=True):
        assert one.label == two.label
        np.testing.assert_allclose(one.score, two.score, atol=1e-5)


def test_the_model_card_says_what_is_read(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "- split: of a text with more than 16 tokens the beginning (25% of the tokens) and the end are read." in card
    assert "- windows: of a text with more than 16 tokens up to 8 overlapping windows are read, and their" in card
    assert "- plain:" not in card
