"""The starter data keep the promises that the README makes."""

import csv
from collections import Counter

import pytest

from weft.data.splits import fold
from weft.foundation.shipped import shipped_folder

STARTER = shipped_folder("starter")
TASKS = ("sentiment", "paraphrase", "similarity")


def rows(task: str, split: str) -> list[dict[str, str]]:
    with (STARTER / f"{task}-{split}.tsv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t"))


@pytest.mark.parametrize("task", TASKS)
def test_sizes_and_shapes(task: str) -> None:
    columns = ["text", "label"] if task == "sentiment" else ["text", "text2", "label"]
    train, dev = rows(task, "train"), rows(task, "dev")
    assert len(train) + len(dev) >= 300
    assert len(dev) >= 80
    for row in train + dev:
        assert list(row) == columns
        assert all(value.strip() for value in row.values())


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_labels_are_balanced(task: str, split: str) -> None:
    labels = [float(row["label"]) for row in rows(task, split)]
    classes = [min(int(label), 4) if task == "similarity" else int(label) for label in labels]
    counts = Counter(classes)
    assert sorted(counts) == ([0, 1] if task == "paraphrase" else [0, 1, 2, 3, 4])
    assert max(counts.values()) <= 1.1 * min(counts.values())


@pytest.mark.parametrize("task", TASKS)
def test_no_text_stands_twice(task: str) -> None:
    texts = [fold(row[c]) for split in ("train", "dev") for row in rows(task, split) for c in row if c != "label"]
    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_word_overlap_alone_does_not_tell_paraphrases() -> None:
    def jaccard(row: dict[str, str]) -> float:
        a, b = (set(fold(row[c]).strip("?.").split()) for c in ("text", "text2"))
        return len(a & b) / len(a | b)

    data = rows("paraphrase", "train")
    means = [
        sum(jaccard(r) for r in data if r["label"] == label) / sum(r["label"] == label for r in data) for label in "01"
    ]
    assert abs(means[0] - means[1]) < 0.08
