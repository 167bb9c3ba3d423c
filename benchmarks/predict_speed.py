"""How fast trained models answer: pairs of ways to do the same work, measured in turn.

    python benchmarks/predict_speed.py [--data-dir DIR] [--model RUN] [--texts N] [--rounds N] [--only KEY]...

Each comparison has two sides that answer the same texts. They alternate for several rounds, so that whatever else the
machine does hits both alike; a ratio is that of their median times, its spread that of the rounds. The last line is
JSON: each key with its ratio, the lowest and highest of single rounds, and texts per second.

To add a comparison, write a function that prepares its two sides and name it in COMPARISONS.
"""

import argparse
import csv
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import weft
from weft.data.config import PRESETS
from weft.export import export
from weft.export.quantize import to_int8

Side = Callable[[], object]
"""answers all texts once"""


@dataclass(frozen=True)
class Bench:
    """What comparisons share. Whatever they need is made when first asked for."""

    texts: list[str]
    run: Path
    workplace: Path

    @cached_property
    def model(self) -> weft.Model:
        return weft.load(self.run, "cpu")

    @cached_property
    def task(self) -> str:
        """the model's first task on single texts"""
        return next(name for name, task in self.model.recipe.tasks.items() if task.reading == "single")

    @cached_property
    def onnx_folder(self) -> Path:
        export(self.run, "onnx", self.workplace / "onnx")
        return self.workplace / "onnx"

    @cached_property
    def onnx(self) -> weft.Model:
        return weft.load(self.onnx_folder)

    @cached_property
    def onnx_int8(self) -> weft.Model:
        folder = self.workplace / "int8"
        shutil.copytree(self.onnx_folder, folder)
        for reading in {task.reading for task in self.model.recipe.tasks.values()}:
            to_int8(folder / f"{reading}.onnx", self.model.network.body.shape.layers)
        return weft.load(folder)

    def predict(self, model: weft.Model) -> Side:
        return lambda: model.predict(self.task, self.texts)


def onnx_int8_vs_onnx(bench: Bench) -> tuple[Side, Side]:
    """ONNX Runtime with 8-bit weights against full precision"""
    return bench.predict(bench.onnx_int8), bench.predict(bench.onnx)


def onnx_vs_torch(bench: Bench) -> tuple[Side, Side]:
    """ONNX Runtime, padded, against torch, packed"""
    return bench.predict(bench.onnx), bench.predict(bench.model)


COMPARISONS = {compare.__name__: compare for compare in (onnx_int8_vs_onnx, onnx_vs_torch)}


@dataclass(frozen=True)
class Result:
    ours: list[float]
    theirs: list[float]
    """seconds of each round"""

    @property
    def ratio(self) -> float:
        return statistics.median(self.theirs) / statistics.median(self.ours)

    @property
    def spread(self) -> tuple[float, float]:
        rounds = [b / a for a, b in zip(self.ours, self.theirs, strict=True)]
        return min(rounds), max(rounds)


def measure(sides: tuple[Side, Side], rounds: int) -> Result:
    for side in sides:
        side()  # the first time is never like the others
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):  # neither side always goes first
            start = time.perf_counter()
            sides[which]()
            seconds[which].append(time.perf_counter() - start)
    return Result(*seconds)


def read_texts(data_dir: Path | None) -> list[str]:
    """SST-5's dev sentences, or the starter sentiment set."""
    if data_dir is not None:
        config = PRESETS["sst5"]
        with (data_dir / str(config.dev)).open(encoding="utf-8", newline="") as handle:
            return [row[config.text] for row in csv.DictReader(handle, delimiter="\t")]
    config = PRESETS["starter/sentiment"]
    texts = []
    for file in (config.train, config.dev):
        with Path(str(file)).open(encoding="utf-8", newline="") as handle:
            texts += [row[config.text] for row in csv.DictReader(handle, delimiter="\t")]
    return texts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with SST-5's files; the starter data unless given")
    parser.add_argument("--model", type=Path, help="a run folder; one step of the starter recipe unless given")
    parser.add_argument("--texts", type=int, help="use the first N texts; all unless given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=list(COMPARISONS), help="may be repeated; all unless given")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    texts = read_texts(asked.data_dir)[: asked.texts]
    with tempfile.TemporaryDirectory() as place:
        run = asked.model
        if run is None:  # the speed does not depend on what the weights have learnt
            run = Path(place) / "run"
            weft.train("starter", run, steps=1)
        bench = Bench(texts, run, Path(place))
        results = {}
        for name in asked.only or COMPARISONS:
            print(f"measuring {name}", file=sys.stderr)
            results[name] = measure(COMPARISONS[name](bench), asked.rounds)
    table = Table(
        title=f"{len(texts):,} texts, {asked.rounds} rounds, {torch.get_num_threads()} threads", title_justify="left"
    )
    for column in ("comparison", "what", "ratio", "rounds", "texts/s"):
        table.add_column(column)
    report: dict[str, object] = {}
    speeds, spreads = {}, {}
    for name, result in results.items():
        low, high = result.spread
        speeds[name] = [round(len(texts) / statistics.median(side), 1) for side in (result.ours, result.theirs)]
        spreads[name] = [round(low, 3), round(high, 3)]
        report[name] = round(result.ratio, 3)
        shown = f"{speeds[name][0]:,.0f} : {speeds[name][1]:,.0f}"
        table.add_row(name, str(COMPARISONS[name].__doc__), f"{result.ratio:.2f}", f"{low:.2f} to {high:.2f}", shown)
    Console(width=140).print(table)
    settings = {"texts": len(texts), "rounds": asked.rounds, "threads": torch.get_num_threads()}
    print(json.dumps(report | {"spread": spreads, "texts_per_second": speeds} | settings))


if __name__ == "__main__":
    main()
