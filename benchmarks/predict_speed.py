"""How fast trained models answer: pairs of ways to do the same work, measured in turn.

    python benchmarks/predict_speed.py [--data-dir DIR] [--model RUN] [--texts N] [--rounds N] [--only KEY]...

Each comparison has two sides that answer the same texts. They alternate for several rounds, so that whatever else the
machine does hits both alike; a ratio is that of their median times, its spread that of the rounds. The last line is
JSON: each key with its ratio, the lowest and highest of single rounds, and texts per second.

To add a comparison, write a function that prepares its two sides and name it in COMPARISONS.
"""

import argparse
import csv
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sides import Ratio, alternate, show

import weft
from weft.data.config import PRESETS
from weft.deliverable import read_settings
from weft.export import export
from weft.export.onnx import seal
from weft.export.quantize import to_int8
from weft.model import model_folder

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
        seal(folder, read_settings(self.onnx_folder), {"to": "onnx", "quantize": "int8"})
        return weft.load(folder)

    def predict(self, model: weft.Model) -> Side:
        return lambda: model.predict(self.task, self.texts)


def onnx_int8_vs_onnx(bench: Bench) -> tuple[Side, Side]:
    """ONNX Runtime with 8-bit weights against full precision"""
    return bench.predict(bench.onnx_int8), bench.predict(bench.onnx)


def onnx_vs_torch(bench: Bench) -> tuple[Side, Side]:
    """ONNX Runtime, padded, against torch, packed"""
    return bench.predict(bench.onnx), bench.predict(bench.model)


def vs_pipeline(bench: Bench) -> tuple[Side, Side]:
    """weft's predict against transformers' text-classification pipeline, batches of 32"""
    from transformers import BertForSequenceClassification, PreTrainedTokenizerFast, pipeline

    folder = model_folder(bench.run)  # the same body; what its head answers does not matter here
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder, num_labels=5)
    theirs = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu", truncation=True)
    return bench.predict(bench.model), lambda: theirs(bench.texts, batch_size=32, max_length=128)


def vs_encode(bench: Bench) -> tuple[Side, Side]:
    """weft's embed against SentenceTransformer.encode, batches of 32"""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(model_folder(bench.run)), device="cpu")
    theirs.max_seq_length = 128
    return lambda: bench.model.embed(bench.texts), lambda: theirs.encode(bench.texts, batch_size=32)


COMPARISONS = {compare.__name__: compare for compare in (vs_pipeline, vs_encode, onnx_int8_vs_onnx, onnx_vs_torch)}


def measure(sides: tuple[Side, Side], texts: int, rounds: int) -> tuple[list[float], list[float]]:
    """Texts per second of both sides in every round."""

    def timed(side: Side) -> float:
        start = time.perf_counter()
        side()
        return texts / (time.perf_counter() - start)

    for side in sides:
        side()  # the first time is never like the others
    measured = alternate({"ours": lambda: timed(sides[0]), "theirs": lambda: timed(sides[1])}, rounds)
    return measured["ours"], measured["theirs"]


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
        ratios, speeds = {}, {}
        for name in asked.only or COMPARISONS:
            print(f"measuring {name}", file=sys.stderr)
            ours, theirs = measure(COMPARISONS[name](bench), len(texts), asked.rounds)
            ratios[name] = Ratio.of(ours, theirs)
            speeds[name] = [round(statistics.median(side), 1) for side in (ours, theirs)]
    about = {name: str(compare.__doc__) for name, compare in COMPARISONS.items()}
    show(ratios, about, {"texts": len(texts), "rounds": asked.rounds, "texts_per_second": speeds})


if __name__ == "__main__":
    main()
