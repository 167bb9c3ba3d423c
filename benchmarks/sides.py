"""What all benchmarks share: sides that alternate in rounds, and ratios of medians with their spread."""

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

Side = Callable[[], float]
"""does one round of the work and returns what it measured: examples or texts per second, or seconds per step"""


def alternate(sides: Mapping[str, Side], rounds: int) -> dict[str, list[float]]:
    """Every side in every round: what slows the machine down slows all of them down. None always goes first."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            measured[name].append(sides[name]())
            print(f"round {number + 1}/{rounds}  {name}: {measured[name][-1]:.4g}", file=sys.stderr, flush=True)
    return measured


@dataclass(frozen=True)
class Ratio:
    """One side against another: of medians, and the lowest and highest of single rounds."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> "Ratio":
        by_round = [a / b for a, b in zip(ours, theirs, strict=True)]
        middle = statistics.median(ours) / statistics.median(theirs)
        return cls(round(middle, 3), round(min(by_round), 3), round(max(by_round), 3))


def show(ratios: Mapping[str, Ratio], about: Mapping[str, str], further: Mapping[str, object]) -> None:
    """A table for people and a last line for programs."""
    rows = [["comparison", "ratio", "single rounds", "what"]]
    rows += [[key, f"{r.value:.2f}", f"{r.low:.2f} to {r.high:.2f}", about[key]] for key, r in ratios.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    numbers = {key: r.value for key, r in ratios.items()}
    spread = {key: [r.low, r.high] for key, r in ratios.items()}
    print(json.dumps({**numbers, "spread": spread, "threads": torch.get_num_threads(), **further}))


def recipe_for(data_dir: Path | None) -> tuple[str, list[str]]:
    """The three tasks, batch 16 each: on the real sets, or on the starter data; the same readings in both."""
    if data_dir is not None:
        sizes = [f"tasks.{task}.batch_size=16" for task in ("sentiment", "paraphrase", "similarity")]
        return "plain", sizes
    cross = ["tasks.paraphrase.reading=cross", "tasks.paraphrase.head=linear", "tasks.paraphrase.loss=cross-entropy"]
    return "starter", [*cross, "tasks.similarity.reading=cross", "tasks.similarity.head=linear", "max_length=128"]
