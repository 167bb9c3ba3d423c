"""What all benchmarks share: sides that alternate in rounds, and ratios of medians with their spread."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Side = Callable[[], float]
"""does one round of the work and returns what it measured"""


def alternate(sides: Mapping[str, Side], rounds: int) -> dict[str, list[float]]:
    """Every side in every round, one after the other: what slows the machine down slows all of them down."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name, side in sides.items():
            measured[name].append(side())
            print(f"round {number + 1}/{rounds}  {name}: {measured[name][-1]:.4g}", flush=True)
    return measured


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Ratio of medians; `low` and `high` are the smallest and largest ratio of one round."""
    by_round = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {
        "ratio": round(statistics.median(ours) / statistics.median(theirs), 3),
        "low": round(min(by_round), 3),
        "high": round(max(by_round), 3),
    }


def show(rows: Sequence[Sequence[str]], result: Mapping[str, object]) -> None:
    """A table for people and a last line for programs."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(json.dumps(result))


def recipe_for(data_dir: Path | None) -> tuple[str, list[str]]:
    """The three tasks, batch 16 each: on the real sets, or on the starter data; the same readings in both."""
    if data_dir is not None:
        sizes = [f"tasks.{task}.batch_size=16" for task in ("sentiment", "paraphrase", "similarity")]
        return "multitask", sizes
    cross = ["tasks.paraphrase.reading=cross", "tasks.paraphrase.head=linear", "tasks.paraphrase.loss=cross-entropy"]
    return "starter", [*cross, "tasks.similarity.reading=cross", "tasks.similarity.head=linear", "max_length=128"]
