"""Labels and names that mean harm, from the data to the terminal, the csv file and the model card."""

import json
from pathlib import Path

import pytest

from tests.exported import write_model
from tests.integration.command import weft
from tests.tiny import write_rows
from weft.foundation.sanitize import CONTROL

EVIL = "=1+1 <img src=x onerror=y>|\x1b]0;title\x07\u202e"
NAME = "run\n<script>alert(1)</script> [x](javascript:y)"


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    rows = [{"text": f"a warm film {i}", "label": EVIL if i % 2 else "good"} for i in range(12)]
    files = {split: str(write_rows(folder / f"{split}.tsv", rows)) for split in ("train", "dev")}
    return write_model(tiny, folder, {"mood": {"like": "sentiment", "data": files}}, name=NAME)


def test_the_terminal_gets_no_control_characters(model: Path) -> None:
    for arguments in (["a warm film"], ["a warm film", "--json"]):
        shown = weft("predict", model, "mood", *arguments).stdout
        assert not CONTROL.search(shown)
        assert "\\u001b]0;title\\u0007" in shown
    (answer,) = json.loads(shown)
    assert EVIL in answer["probabilities"]


def test_messages_have_no_control_characters(model: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.tsv", [{"text": "a", "label": "\x1b[31mred"}])
    said = weft("evaluate", model, "--file", f"mood={path}", code=2).stderr
    assert "red" in said
    assert not CONTROL.search(said)


def test_the_csv_file_has_no_formula(model: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.tsv", [{"text": f"a warm film {i}"} for i in range(9)])
    weft("predict", model, "mood", "--input", source, "--output", tmp_path / "out.csv")
    weft("predict", model, "mood", "--input", source, "--output", tmp_path / "raw.csv", "--raw-csv")
    assert "=1+1" not in (tmp_path / "out.csv").read_text().replace("'=1+1", "").replace("p_=1+1", "")
    assert (tmp_path / "out.csv").read_text().replace("'=1+1", "=1+1") == (tmp_path / "raw.csv").read_text()


def test_the_model_card_is_plain_text(model: Path) -> None:
    card = (model / "README.md").read_text()
    written = card.split("---\n", 2)[2].split("```toml")[0]
    assert "<img" not in written
    assert "<script" not in written
    assert "\\[x\\](javascript:y)" in written
    assert "&lt;img src=x onerror=y&gt;\\|" in written
    assert not CONTROL.search(card)
