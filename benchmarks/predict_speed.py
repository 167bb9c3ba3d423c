"""How fast trained models answer: pairs of ways to do the same work, measured in turn.

    python benchmarks/predict_speed.py [--data-dir DIR] [--model RUN] [--texts N] [--rounds N] [--only KEY]...

Each comparison has two sides that answer the same texts. They alternate for several rounds, so that whatever else the
machine does hits both alike; a ratio is that of their median times, its spread that of the rounds. The last line is
JSON: each key with its ratio, the lowest and highest of single rounds, texts per second, and how far the answers of
both sides are apart; if that is more than rounding, the script stops. A model given by --model must have a task on
single texts that `weft export --to transformers` can write, and for vs_encode one that reads texts apart.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sides import Ratio, alternate, show

import weft
from weft.data.config import PRESETS
from weft.export import export
from weft.export.onnx import seal
from weft.export.quantize import to_int8
from weft.recipes.recipe import load_recipe
from weft.runs.model_folder import read_settings

SAME = 1e-5
"""how far two sides' answers may be apart at most"""


@dataclass(frozen=True)
class Side:
    """One way to answer all texts."""

    answer: Callable[[], Any]
    """what is timed"""
    read: Callable[[Any], NDArray[np.float64]]
    """its answers as numbers, text by text"""


@dataclass(frozen=True)
class Pair:
    """Two ways to do the same."""

    ours: Side
    theirs: Side
    texts: int
    rounded: bool = False
    """whether one of them rounds on purpose"""


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
        return next(name for name, task in self.model.config.tasks.items() if task.reading == "single")

    def exported(self, to: str) -> Path:
        folder = self.workplace / to
        if not folder.exists():
            export(self.run, to, folder)
        return folder

    @cached_property
    def onnx(self) -> weft.Model:
        return weft.load(self.exported("onnx"))

    @cached_property
    def onnx_int8(self) -> weft.Model:
        folder = self.workplace / "int8"
        shutil.copytree(self.exported("onnx"), folder)
        for reading in {task.reading for task in self.model.config.tasks.values()} & {"single", "cross", "concat"}:
            to_int8(folder / f"{reading}.onnx", self.model.network.body.shape.layers)
        seal(folder, read_settings(self.exported("onnx")), {"to": "onnx", "quantize": "int8"})
        return weft.load(folder)

    def predict(self, model: weft.Model, texts: list[str] | None = None) -> Side:
        def read(answers: list[weft.Prediction]) -> NDArray[np.float64]:
            return np.array([list((answer.probabilities or {}).values()) for answer in answers])

        return Side(lambda: model.predict(self.task, self.texts if texts is None else texts), read)

    def pipeline(self, texts: list[str]) -> Side:
        """The exported task as transformers runs it."""
        from transformers import pipeline

        folder = str(self.exported("transformers") / self.task)
        theirs = pipeline("text-classification", model=folder, device="cpu", truncation=True, top_k=None)
        names = self.model.labels[self.task].names

        def read(answers: list[list[dict[str, Any]]]) -> NDArray[np.float64]:
            by_name = [{one["label"]: one["score"] for one in answer} for answer in answers]
            return np.array([[answer[name] for name in names] for answer in by_name])

        return Side(lambda: theirs(texts, batch_size=32, max_length=self.model.config.max_length), read)


def vs_pipeline(bench: Bench) -> Pair:
    """weft's predict against transformers' text-classification pipeline, batches of 32"""
    return Pair(bench.predict(bench.model), bench.pipeline(bench.texts), len(bench.texts))


def vs_pipeline_repeated(bench: Bench) -> Pair:
    """the same where every text comes four times"""
    texts = bench.texts[: max(len(bench.texts) // 4, 1)] * 4
    return Pair(bench.predict(bench.model, texts), bench.pipeline(texts), len(texts))


def vs_encode(bench: Bench) -> Pair:
    """weft's embed against SentenceTransformer.encode, batches of 32"""
    from sentence_transformers import SentenceTransformer

    task = bench.model.embedding_task()
    theirs = SentenceTransformer(str(bench.exported("sentence-transformers") / task), device="cpu")
    ours = Side(lambda: bench.model.embed(bench.texts, task), np.asarray)
    return Pair(ours, Side(lambda: theirs.encode(bench.texts, batch_size=32), np.asarray), len(bench.texts))


def onnx_int8_vs_onnx(bench: Bench) -> Pair:
    """ONNX Runtime with 8-bit weights against full precision"""
    return Pair(bench.predict(bench.onnx_int8), bench.predict(bench.onnx), len(bench.texts), rounded=True)


def onnx_vs_torch(bench: Bench) -> Pair:
    """ONNX Runtime, padded, against torch, packed"""
    return Pair(bench.predict(bench.onnx), bench.predict(bench.model), len(bench.texts))


COMPARISONS = {
    compare.__name__: compare
    for compare in (vs_pipeline, vs_pipeline_repeated, vs_encode, onnx_int8_vs_onnx, onnx_vs_torch)
}


def measure(name: str, pair: Pair, rounds: int) -> tuple[list[float], list[float], float]:
    """Texts per second of both sides in every round, and how far their answers are apart."""

    def timed(side: Side) -> float:
        start = time.perf_counter()
        side.answer()
        return pair.texts / (time.perf_counter() - start)

    ours, theirs = (side.read(side.answer()) for side in (pair.ours, pair.theirs))  # the first time is slower
    apart = float(np.abs(ours - theirs).max())
    if apart > SAME and not pair.rounded:
        raise SystemExit(f"{name}: the two sides do not do the same work: their answers are {apart:.1e} apart")
    measured = alternate({"ours": lambda: timed(pair.ours), "theirs": lambda: timed(pair.theirs)}, rounds)
    return measured["ours"], measured["theirs"], apart


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
    texts = list(dict.fromkeys(read_texts(asked.data_dir)))[: asked.texts]  # different ones
    with tempfile.TemporaryDirectory() as place:
        run = asked.model
        if run is None:  # the speed does not depend on what the weights have learnt
            run = Path(place) / "run"
            # a sentiment task that transformers can open, and vectors that sentence-transformers can
            settings = ["tasks.sentiment.pooling=pooler", "max_length=128"]
            weft.train(load_recipe("starter", settings=settings), run, steps=1)
        bench = Bench(texts, run, Path(place))
        ratios, speeds, apart = {}, {}, {}
        for name in asked.only or COMPARISONS:
            print(f"measuring {name}", file=sys.stderr)
            ours, theirs, apart[name] = measure(name, COMPARISONS[name](bench), asked.rounds)
            ratios[name] = Ratio.of(ours, theirs)
            speeds[name] = [round(statistics.median(side), 1) for side in (ours, theirs)]
    about = {name: str(compare.__doc__) for name, compare in COMPARISONS.items()}
    further = {"texts": len(texts), "rounds": asked.rounds, "texts_per_second": speeds, "answers_apart": apart}
    show(ratios, about, further)


if __name__ == "__main__":
    main()
