"""Few labels: accuracy with 8, 16 and 64 rows per class, by pooling, learning rates and what trains.

    python benchmarks/few_labels.py --train trec-train.tsv --dev trec-dev.tsv --text question --label coarse

Every run is `weft.train` on a random subset with equal rows per class, drawn by its seed, on the packaged body. All
methods of a seed get the same rows and the same dev rows, and the same number of steps unless their name says
otherwise. Prints a table of the mean accuracy and its standard deviation over seeds, then one line of JSON.
"""

import argparse
import contextlib
import csv
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import weft
from weft.foundation.randomness import generator

METHODS: dict[str, dict[str, Any]] = {
    "frozen, mean, heads 1e-2": {"pooling": "mean", "trainable": "frozen", "lr": 1e-2},
    "frozen, cls, heads 1e-2": {"pooling": "cls", "trainable": "frozen", "lr": 1e-2},
    "full, mean, 5e-5, heads 1e-3": {"pooling": "mean", "trainable": "full", "lr": 5e-5, "head_lr": 1e-3},
    "full, cls, 5e-5, heads 1e-3": {"pooling": "cls", "trainable": "full", "lr": 5e-5, "head_lr": 1e-3},
    "full, mean, 2e-4, heads 2e-3": {"pooling": "mean", "trainable": "full", "lr": 2e-4, "head_lr": 2e-3},
    "full, mean, 5e-5, heads 1e-3, twice the steps": {
        "pooling": "mean",
        "trainable": "full",
        "lr": 5e-5,
        "head_lr": 1e-3,
        "longer": 2,
    },
}
BATCH = 16
STEPS = {8: 60, 16: 60, 64: 120}


def read(path: Path, text: str, label: str) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        delimiter = "\t" if "\t" in handle.readline() else ","
        handle.seek(0)
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        rows = csv.DictReader(handle, delimiter=delimiter, quoting=quoting)
        return [{"text": row[text], "label": row[label]} for row in rows]


def subset(rows: list[dict[str, str]], per_class: int, seed: int) -> list[dict[str, str]]:
    """`per_class` rows of every class, or all of a smaller one."""
    order = generator(seed, "few labels").permutation(len(rows))
    taken: dict[str, list[dict[str, str]]] = {}
    for number in order:
        taken.setdefault(rows[number]["label"], []).append(rows[number])
    return [row for name in sorted(taken) for row in taken[name][:per_class]]


def recipe(body: str, method: dict[str, Any]) -> dict[str, Any]:
    optimizer = {"lr": method["lr"], "warmup": 5, "clip": 1.0, "weight_decay": 0.01}
    if "head_lr" in method:
        optimizer["head_lr"] = method["head_lr"]
    return {
        "name": "few-labels",
        "body": body,
        "epochs": 1,
        "max_length": 64,
        "trainable": method["trainable"],
        "tasks": {"few": {"kind": "classification", "pooling": method["pooling"], "batch_size": BATCH, "data": {}}},
        "optimizer": optimizer,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--text", default="text")
    parser.add_argument("--label", default="label")
    parser.add_argument("--body", default="packaged:minilm-l6")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dev-rows", type=int, default=300)
    parser.add_argument("--per-class", type=int, nargs="+", default=[8, 16, 64])
    parser.add_argument("--steps", type=int, help="Steps of every run. Defaults to 60, and 120 for 64 rows per class.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    methods = {name: METHODS[name] for name in given.methods}
    train, dev = (read(path, given.text, given.label) for path in (given.train, given.dev))
    chosen = np.sort(generator(0, "few labels", "dev").permutation(len(dev))[: given.dev_rows])
    scored = [dev[number] for number in chosen]
    scores: dict[str, dict[int, list[float]]] = {name: {n: [] for n in given.per_class} for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for per_class in given.per_class:
        for seed in range(given.seeds):
            rows = subset(train, per_class, seed)
            for name, method in methods.items():
                begun = time.perf_counter()
                with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
                    model = weft.train(
                        recipe(given.body, method),
                        Path(folder, "run"),
                        data={"few": {"train": rows, "dev": scored}},
                        seed=seed,
                        steps=(given.steps or STEPS.get(per_class, 60)) * method.get("longer", 1),
                        device="cpu",
                        progress=False,
                    )
                    result = json.loads(Path(folder, "run", "result.json").read_text(encoding="utf-8"))
                    del model
                seconds[name] += time.perf_counter() - begun
                scores[name][per_class].append(result["dev"]["few"]["accuracy"])
                print(per_class, seed, name, scores[name][per_class][-1], file=sys.stderr, flush=True)
    print("| method |", " | ".join(f"{n} rows per class" for n in given.per_class), "| seconds per run |")
    print("| --- |", " | ".join("---" for _ in given.per_class), "| --- |")
    for name, by_size in scores.items():
        cells = [f"{statistics.mean(v):.3f} ± {statistics.stdev(v) if len(v) > 1 else 0:.3f}" for v in by_size.values()]
        each = seconds[name] / sum(map(len, by_size.values()))
        print(f"| {name} |", " | ".join(cells), f"| {each:.0f} |")
    print(json.dumps({"scores": scores, "seconds": seconds, "dev_rows": len(scored), "seeds": given.seeds}))


if __name__ == "__main__":
    main()
