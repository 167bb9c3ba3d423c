"""A table with three labels per row, whole or with blank cells, and a recipe with a task for each of them."""

import random
from pathlib import Path
from typing import Any

from tests.texts import WORDS
from tests.tiny import BAD, GOOD, write_rows

TASKS = {"mood": "classification", "stars": "ordinal", "topics": "multilabel", "warmth": "regression"}


def write_table(path: Path, rows: int = 30, blank: float = 0.0, seed: int = 5) -> Path:
    """Every cell of a label is blank with this probability; the first rows have all labels."""
    draw = random.Random(seed)
    table = []
    for i in range(rows):
        good = i % 2 == 0
        labels: dict[str, Any] = {
            "mood": "good" if good else "bad",
            "stars": draw.choice([4, 5] if good else [1, 2, 3]),
            "topics": ["plot", "plot;sound", "[]", "sound"][i % 4],
            "warmth": round(draw.random() + good, 2),
        }
        if i >= 10:
            labels = {task: "" if draw.random() < blank else value for task, value in labels.items()}
        word = draw.choice(GOOD if good else BAD)
        table.append({"text": f"a {word} film {' '.join(draw.sample(WORDS, i % 7))} {draw.choice(WORDS)}"} | labels)
    return write_rows(path, table)


def table_content(tiny: Path, path: Path, **changes: Any) -> dict[str, Any]:
    """A recipe with four tasks, all of which read the texts of one file."""
    poolings = dict(zip(TASKS, ("cls", "mean", "pooler", "attention"), strict=True))
    columns = {"train": str(path), "dev": str(path), "on_blank": "skip"}
    return {
        "name": "table",
        "body": str(tiny / "body"),
        "epochs": 2,
        "max_length": 24,
        "tasks": {
            task: {"kind": kind, "pooling": poolings[task], "batch_size": 4, "data": columns | {"label": task}}
            for task, kind in TASKS.items()
        },
        "optimizer": {"lr": 1e-3, "precision": "fp64"},
    } | changes
