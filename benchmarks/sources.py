"""What one source for several tasks saves: an epoch on one table with several label columns, against a file per task.

    python benchmarks/sources.py [--table FILE --text COLUMN --labels A,B,C --kind KIND] [--steps 40] [--rounds 3]

epoch_vs_separate: seconds of an epoch with one source against the same rows in one source per task (copies of it).
cpu_vs_separate: the same in processor time. tokens_vs_separate: tokens through the body. Both sides have the same
number of steps per epoch, so the ratio of steps is that of epochs. Lower is better. differences: the largest difference
of a loss and of a gradient, relative to the largest gradient, between one pass and separate passes on the same rows, in
float64 without dropout; with --blank, the cells of this share of labels are blank in that comparison. Without --table:
the starter data with three labels made of one.
"""

import argparse
import csv
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from sides import Ratio, alternate, show

from weft.build import assemble
from weft.foundation.shipped import shipped_folder
from weft.foundation.values import Window
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe

ABOUT = {
    "epoch_vs_separate": "seconds of an epoch, one source against one per task",
    "cpu_vs_separate": "the same in processor time, which other programs of the machine disturb less",
    "tokens_vs_separate": "tokens through the body, likewise",
}
Table = list[dict[str, str]]


def starter() -> Table:
    """The starter sentences with their label and two coarser ones."""
    with (shipped_folder("starter") / "sentiment-train.tsv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    coarser = {"0": ("low", "strong"), "1": ("low", "weak"), "2": ("middle", "weak"), "3": ("high", "weak")}
    labels = [coarser.get(row["label"], ("high", "strong")) for row in rows]
    return [row | {"side": side, "force": force} for row, (side, force) in zip(rows, labels, strict=True)]


def write_table(path: Path, rows: Table, blank: tuple[str, ...] = (), share: float = 0.0, mark: str = "") -> Path:
    """`mark` makes the file another one; a cell of the `blank` columns is blank with probability `share`."""
    draw = random.Random(1)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, [*rows[0], "mark"])
        writer.writeheader()
        for row in rows:
            cells = {name: "" for name in blank if draw.random() < share}
            writer.writerow(row | cells | {"mark": mark})
    return path


def build(files: dict[str, Path], text: str, kind: str, **changes: Any) -> Assembly:
    content = {
        "name": "sources",
        "epochs": 1,
        "tasks": {
            label: {
                "kind": kind,
                "pooling": "mean",
                "data": {"train": str(path), "dev": str(path), "text": text, "label": label, "on_blank": "skip"},
            }
            for label, path in files.items()
        },
        "dev_rows": 8,
    }
    made = assemble(parse_recipe(content | changes, "sources"), device="cpu")
    made.network.train()
    return made


def seconds(made: Assembly, steps: int, cpu: list[float], tokens: list[float]) -> float:
    """Seconds per step on windows spread over the epoch; processor time and tokens through the body are noted too."""
    count = made.plan.steps
    chosen = [number * count // steps % count for number in range(steps)]
    made.step(made.plan.window(0), 1e-5)
    start, busy = time.perf_counter(), time.process_time()
    tokens.append(sum(made.step(made.plan.window(number), 1e-5).tokens for number in chosen))
    cpu.append(time.process_time() - busy)
    return (time.perf_counter() - start) / steps


def differences(made: Assembly, window: Window) -> tuple[float, float]:
    """The largest difference of a loss, and of a gradient, to the sum over a pass for each task."""
    network = made.network
    network.zero_grad()
    totals = made.step._gradients(window, torch.ones(len(window.tasks), dtype=torch.float64))
    together = [None if p.grad is None else p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    apart = []
    for part in window.parts:
        batch = made.data[part.task].train.batch(part.rows)
        loss = network.task(part.task).losses(network([batch])[0], batch.target).mean()
        loss.backward()
        apart.append(loss.detach())
    pairs = [(a, p.grad) for a, p in zip(together, network.parameters(), strict=True) if a is not None]
    largest = max(float(theirs.abs().max()) for _, theirs in pairs if theirs is not None)
    furthest = max(float((ours - theirs).abs().max()) for ours, theirs in pairs if theirs is not None)
    return float((totals.losses - torch.stack(apart)).abs().max()), furthest / largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="a csv file")
    parser.add_argument("--text", default="text")
    parser.add_argument("--labels", default="label,side,force")
    parser.add_argument("--kind", default="classification")
    parser.add_argument("--blank", type=float, default=0.6)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    labels = tuple(options.labels.split(","))
    rows = starter()
    if options.table is not None:
        with options.table.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
    with tempfile.TemporaryDirectory() as folder:
        whole = write_table(Path(folder) / "whole.csv", rows)
        copies = {label: write_table(Path(folder) / f"{label}.csv", rows, mark=label) for label in labels}
        sides = {
            "one source": build(dict.fromkeys(labels, whole), options.text, options.kind),
            "separate": build(copies, options.text, options.kind),
        }
        assert len({made.plan.steps for made in sides.values()}) == 1
        cpu: dict[str, list[float]] = {side: [] for side in sides}
        tokens: dict[str, list[float]] = {side: [] for side in sides}
        measured = alternate(
            {
                side: lambda one=one, own=(cpu[side], tokens[side]): seconds(one, options.steps, *own)
                for side, one in sides.items()
            },
            options.rounds,
        )
        exact: dict[str, Any] = {"dropout": 0.0, "body_dropout": 0.0, "optimizer": {"precision": "fp64"}}
        found = {}
        for name, share in (("whole", 0.0), ("blank", options.blank)):
            path = write_table(Path(folder) / f"{name}-exact.csv", rows, labels, share)
            made = build(dict.fromkeys(labels, path), options.text, options.kind, **exact)
            pairs = [differences(made, made.plan.window(step)) for step in range(3)]
            loss, gradient = (max(numbers) for numbers in zip(*pairs, strict=True))
            found[name] = {"loss": loss, "gradient": gradient}
    ratios = {
        "epoch_vs_separate": Ratio.of(measured["one source"], measured["separate"]),
        "cpu_vs_separate": Ratio.of(cpu["one source"], cpu["separate"]),
        "tokens_vs_separate": Ratio.of(tokens["one source"], tokens["separate"]),
    }
    steps = sides["separate"].plan.steps
    epochs = {side: round(sorted(own)[len(own) // 2] * steps) for side, own in measured.items()}
    show(ratios, ABOUT, {"differences": found, "rows": len(rows), "epoch_seconds": epochs})


if __name__ == "__main__":
    main()
