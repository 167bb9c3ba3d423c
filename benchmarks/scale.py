"""What grows with the number of rows: memory and time of training, evaluation and prediction on large files.

    python benchmarks/scale.py [--rows-small N] [--rows-large N] [--rounds N] [--only WORK]...

Makes two files in a temporary folder and works on each in a process of its own, with a tiny random body, so that the
handling of rows shows and not the multiplying of matrices. Memory is the peak of the process's anonymous memory: what
it holds for itself, without the files that it maps. Time is the processor's, so that whatever else the machine does is
not counted, and without imports; training's is that of reading, tokenizing and splitting its file, and its steps are
timed apart. The last line is JSON: for each work both peaks in MB, their difference, and how the time per row of the
large file compares with that of the small one. The growth that stands by itself is the largest of the three.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.texts import WORDS
from tests.tiny import write_body

from weft.api import Quiet, train
from weft.inference.bulk.job import BulkJob
from weft.inference.bulk.work import Answers
from weft.inference.model import load
from weft.recipes.recipe import parse_recipe
from weft.training.checkpoint import Progress

WORKS = ("train", "evaluate", "predict")
STEPS = 20
DEV_ROWS = 1000
WARM_UP_ROWS = 2000


def write_file(path: Path, rows: int) -> None:
    """Texts of 1 to 24 words, nearly all different, and a label."""
    draw = random.Random(rows)
    with path.open("w", encoding="utf-8") as file:
        file.write("text\tlabel\n")
        for row in range(rows):
            file.write(
                f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 24)))} {row}\t{'bad' if row % 2 else 'good'}\n"
            )


class Clock(Quiet):
    """Notes when a file starts to be answered, or steps start to be taken."""

    started_at = 0.0

    def started(self, progress: Progress | int, steps: int) -> None:  # noqa: ARG002
        self.started_at = time.process_time()

    def advanced(self, rows: int) -> None: ...


def work_on(work: str, place: Path, rows: int) -> dict[str, float]:
    """Do the work on the file with so many rows and say how long it took."""
    clock = Clock()
    file = place / f"{rows}.tsv"
    if work == "train":
        data = {"train": str(file), "dev_fraction": DEV_ROWS / rows}
        task = {"kind": "classification", "labels": ["bad", "good"], "data": data, "batch_size": 32}
        content = {"name": "scale", "body": str(place / "body"), "epochs": 1, "max_length": 32, "tasks": {"mood": task}}
        begin = time.process_time()
        train(parse_recipe(content, "scale"), place / f"run-{rows}-{time.time_ns()}", steps=STEPS, listener=clock)
        return {"seconds": clock.started_at - begin, "steps": time.process_time() - clock.started_at}
    model = next(place.glob("run-*"))
    begin = time.process_time()
    if work == "evaluate":
        load(model).evaluate(files={"mood": file})
    else:
        BulkJob(model, Answers("mood"), file, place / f"answers-{rows}.parquet").run(clock)
    return {"seconds": time.process_time() - begin}


def anonymous_mb(pid: int) -> float:
    """What a process holds now; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:")), 0.0)


def measure(work: str, place: Path, rows: int) -> dict[str, float]:
    """Run one work in a process of its own and watch its memory."""
    # a cache of its own each time: building it is part of what is measured
    with tempfile.TemporaryDirectory(dir=place) as cache:
        own = {"WEFT_CACHE": cache, "OMP_NUM_THREADS": "1"}  # tiny tensors gain nothing from threads
        command = [sys.executable, __file__, "--child", work, "--place", str(place), "--rows-small", str(rows)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | own)
        peak = 0.0
        while child.poll() is None:
            peak = max(peak, anonymous_mb(child.pid))
            time.sleep(0.005)
        assert child.stdout is not None
        said = child.stdout.read()
        if child.returncode:
            raise SystemExit(f"{work} on {rows} rows ended with {child.returncode}")
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    print(f"{work}, {rows:,} rows: {peak:.0f} MB, {found['seconds']:.1f} s", file=sys.stderr, flush=True)
    return found | {"mb": peak}


def compare(work: str, place: Path, small: int, large: int, rounds: int) -> dict[str, float]:
    """Both files in every round; medians over rounds."""
    seen = [(measure(work, place, small), measure(work, place, large)) for _ in range(rounds)]
    middle = [{key: statistics.median(one[i][key] for one in seen) for key in seen[0][i]} for i in (0, 1)]
    per_row = [one["seconds"] / rows for one, rows in zip(middle, (small, large), strict=True)]
    steps = {"step_time_ratio": round(middle[1]["steps"] / middle[0]["steps"], 3)} if work == "train" else {}
    return {
        "anonymous_mb_small": round(middle[0]["mb"], 1),
        "anonymous_mb_large": round(middle[1]["mb"], 1),
        "growth_mb": round(middle[1]["mb"] - middle[0]["mb"], 1),
        "microseconds_per_row_small": round(1e6 * per_row[0], 2),
        "microseconds_per_row_large": round(1e6 * per_row[1], 2),
        "time_per_row_ratio": round(per_row[1] / per_row[0], 3),
        **steps,
    }


def show(found: dict[str, dict[str, float]], small: int, large: int) -> None:
    rows = [["work", f"MB at {small:,}", f"MB at {large:,}", "growth", "us a row", "us a row", "ratio"]]
    rows += [[work, *(f"{value:,.2f}" for value in list(one.values())[:6])] for work, one in found.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    worst = {key: max(one[key] for one in found.values()) for key in ("growth_mb", "time_per_row_ratio")}
    print(json.dumps({**worst, "rows": [small, large], **found}))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows-small", type=int, default=100_000)
    parser.add_argument("--rows-large", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=WORKS, help="may be repeated; all unless given")
    parser.add_argument("--child", choices=WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    small, large = asked.rows_small, asked.rows_large
    if asked.child:
        work_on(asked.child, asked.place, WARM_UP_ROWS)  # the first time is never like the others
        print(json.dumps(work_on(asked.child, asked.place, small)))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_body(place / "body")
        for rows in (WARM_UP_ROWS, small, large):
            write_file(place / f"{rows}.tsv", rows)
        work_on("train", place, WARM_UP_ROWS)  # the model that answers in the other works
        show({work: compare(work, place, small, large, asked.rounds) for work in asked.only or WORKS}, small, large)


if __name__ == "__main__":
    main()
