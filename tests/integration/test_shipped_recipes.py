"""Every shipped recipe really trains: two windows each, on tiny data in the layout of the presets."""

import json
import random
from pathlib import Path

import pytest

import weft
from tests.texts import WORDS
from tests.tiny import write_body, write_rows
from weft.recipes.library import library

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """body/ with twelve layers, which some rows need, and data/ with the files that the presets name."""
    folder = tmp_path_factory.mktemp("place")
    write_body(folder / "body", layers=12, width=8)
    draw = random.Random(5)

    def text() -> str:
        return " ".join(draw.sample(WORDS, draw.randint(2, 6)))

    for split, count in (("train", 40), ("dev", 12)):
        singles = {"ids-sst": 5, "ids-cfimdb": 2, "yelp": 2}
        for stem, classes in singles.items():
            rows = [{"sentence": text(), "sentiment": i % classes} for i in range(count)]
            write_rows(folder / "data" / f"{stem}-{split}.csv", rows)
        pairs = [{"sentence1": text(), "sentence2": text()} for _ in range(2 * count)]
        write_rows(folder / "data" / f"quora-{split}.csv", [p | {"is_duplicate": i % 2} for i, p in enumerate(pairs)])
        scored = [p | {"similarity": i % 6} for i, p in enumerate(pairs[:count])]
        write_rows(folder / "data" / f"sts-{split}.csv", scored)
    phrases = [{"phrase": text(), "sentiment": i % 5} for i in range(300)]
    write_rows(folder / "data" / "more" / "sst-phrases-train.tsv", phrases)
    return folder


@pytest.mark.parametrize("name", [name for name, shipped in library().items() if not shipped.alias])
def test_two_windows(name: str, place: Path, tmp_path: Path) -> None:
    settings = ["max_length=32"]
    if "yelp" in library()[name].content["tasks"]:  # it comes from the hub, which no test may ask
        files = {split: str(place / "data" / f"yelp-{split}.csv") for split in ("train", "dev")}
        columns = ", ".join(
            f'{key} = "{value}"' for key, value in (files | {"text": "sentence", "label": "sentiment"}).items()
        )
        settings.append(f"tasks.yelp.data={{ {columns} }}")
    weft.train(
        name,
        tmp_path / "run",
        body=str(place / "body"),
        data_dir=place / "data",
        settings=settings,
        steps=2,
        device="cpu",
    )
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["name"], result["steps"], result["best_step"]) == (name, 2, 2)
    steps = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["event"] for record in steps] == ["step", "step", "evaluation"]
