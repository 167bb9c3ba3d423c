"""How the time and the memory of a training step grow with the number of tasks.

    python benchmarks/tasks_growth.py [--tasks 1,3,10,30] [--rows 4] [--steps 2] [--rounds 3] [--cpu-time]
                                      [--figure FILE.svg]

Each task has its own copy of one of the starter sets, with other texts, and gives a fixed number of rows to each step.
plain: all tasks in one pass. pcgrad: one pass per task and PCGrad on their gradients. drawn: PCGrad on the four tasks
that the schedule square-root draws for a step. Each case runs in a process of its own, and all cases alternate in
rounds. per_task_plain and per_task_pcgrad are the seconds of a step per task with the most tasks, compared with three
tasks: 1 is linear growth, less is better. peak_mib is the peak memory of a process. --figure draws time and memory.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from sides import Ratio, alternate, show

from weft.build import assemble
from weft.data.config import PRESETS
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import load_recipe
from weft.training.trainable import set_trainable

ABOUT = {
    "per_task_plain": "seconds of a step per task, the most tasks against three, one pass",
    "per_task_pcgrad": "the same with PCGrad",
    "pcgrad_vs_plain": "seconds of a step with PCGrad against one pass, the most tasks",
    "drawn_vs_pcgrad": "seconds of a step with PCGrad on four drawn tasks against all, the most tasks",
}
KINDS = {
    "sentiment": {"kind": "ordinal", "pooling": "mean"},
    "paraphrase": {"kind": "classification", "reading": "cross"},
    "similarity": {"kind": "regression", "range": [0, 5], "reading": "bi", "pooling": "mean", "head": "cosine"},
}
SIDES: dict[str, dict[str, object]] = {
    "plain": {},
    "pcgrad": {"surgery": "pcgrad"},
    "drawn": {"surgery": "pcgrad", "schedule": "square-root", "optimizer": {"accumulate": 4}},
}


def write_set(preset: str, number: int, folder: Path) -> dict[str, str]:
    """A copy of a starter set whose texts end in the number of the task, so that no two tasks share a text."""
    config, files = PRESETS[f"starter/{preset}"], {}
    for split in ("train", "dev"):
        with Path(str(getattr(config, split))).open(encoding="utf-8", newline="") as handle:
            rows = [row | {"text": f"{row['text']} {number}"} for row in csv.DictReader(handle, delimiter="\t")]
        path = folder / f"{preset}-{number}-{split}.tsv"
        with path.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]), delimiter="\t")
            writer.writeheader()
            writer.writerows(rows)
        files[split] = str(path)
    return files | ({} if config.text2 is None else {"text2": config.text2})


def build(side: str, count: int, rows: int, folder: Path) -> Assembly:
    tasks = {}
    for number in range(count):
        preset = list(KINDS)[number % len(KINDS)]
        data = write_set(preset, number, folder)
        tasks[f"{preset}-{number}"] = KINDS[preset] | {"batch_size": rows, "data": data}
    recipe = load_recipe({"name": "growth", "epochs": 1, "max_length": 96, "tasks": tasks} | SIDES[side])
    made = assemble(recipe)
    set_trainable(made.network, made.recipe.trainable)
    made.network.train()
    return made


def seconds(made: Assembly, steps: int, clock: Callable[[], float]) -> float:
    start = clock()
    for step in range(steps):
        made.step(made.plan.window(step), 1e-5)
    return (clock() - start) / steps


@dataclass(frozen=True)
class Measured:
    """One case in a process of its own."""

    seconds: float
    """of a step; the first one, which allocates, is not counted"""
    peak_mib: int


def measure(case: str, options: argparse.Namespace) -> Measured:
    """Take steps of one case in a new process: its memory is its own, and only one case is in memory at a time."""
    command = [sys.executable, __file__, "--only", case, "--rows", str(options.rows), "--steps", str(options.steps)]
    command += ["--cpu-time"] if options.cpu_time else []
    return Measured(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def work(case: str, options: argparse.Namespace, place: Path) -> Measured:
    side, _, count = case.partition(":")
    made = build(side, int(count), options.rows, place)
    clock = time.process_time if options.cpu_time else time.perf_counter
    seconds(made, 1, clock)
    taken = seconds(made, options.steps, clock)
    # getrusage would also count the process that started this one
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return Measured(taken, int(status.partition("VmHWM:")[2].split()[0]) // 1024)


def draw(measured: dict[str, dict[int, float]], memory: dict[str, dict[int, int]], file: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    marks = {"plain": "o-", "pcgrad": "s-", "drawn": "^--"}
    names = {"plain": "one pass", "pcgrad": "PCGrad, all tasks", "drawn": "PCGrad, four drawn tasks"}
    for side, mark in marks.items():
        counts = list(measured[side])
        first = measured["plain"][min(measured["plain"])]
        left.plot(counts, [measured[side][count] / first for count in counts], mark, label=names[side])
        right.plot(counts, [memory[side][count] / 1024 for count in counts], mark, label=names[side])
    left.set(xlabel="tasks", ylabel="time of a step (1 task = 1)")
    right.set(xlabel="tasks", ylabel="peak memory of the process (GiB)", ylim=(0, None))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="1,3,10,30", help="numbers of tasks, in ascending order")
    parser.add_argument("--rows", type=int, default=4, help="rows of each task in a step")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time, for a busy machine")
    parser.add_argument("--figure", type=Path, help="an SVG file to draw")
    parser.add_argument("--only", help="SIDE:TASKS: measure one case and print it as JSON")
    options = parser.parse_args()
    if not options.only:
        run(options)
        return
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(asdict(work(options.only, options, Path(place)))))


def run(options: argparse.Namespace) -> None:
    counts = [int(count) for count in options.tasks.split(",")]
    # one task has no conflicts, and four of up to four tasks are all of them
    least = {"plain": 1, "pcgrad": 2, "drawn": 5}
    cases = [(side, count) for side in SIDES for count in counts if count >= least[side]]
    peaks: dict[str, int] = {}

    def side_of(case: str) -> Callable[[], float]:
        def one() -> float:
            measured = measure(case, options)
            peaks[case] = max(peaks.get(case, 0), measured.peak_mib)
            return measured.seconds

        return one

    found = alternate({case: side_of(case) for case in (f"{side}:{count}" for side, count in cases)}, options.rounds)
    most, few = counts[-1], next(count for count in counts if count > 1)

    def per_task(side: str, count: int) -> list[float]:
        return [value / count for value in found[f"{side}:{count}"]]

    ratios = {
        "per_task_plain": Ratio.of(per_task("plain", most), per_task("plain", few)),
        "per_task_pcgrad": Ratio.of(per_task("pcgrad", most), per_task("pcgrad", few)),
        "pcgrad_vs_plain": Ratio.of(found[f"pcgrad:{most}"], found[f"plain:{most}"]),
    }
    if f"drawn:{most}" in found:
        ratios["drawn_vs_pcgrad"] = Ratio.of(found[f"drawn:{most}"], found[f"pcgrad:{most}"])
    middle = {
        side: {count: round(statistics.median(found[f"{side}:{count}"]), 4) for own, count in cases if own == side}
        for side in SIDES
    }
    memory = {side: {count: peaks[f"{side}:{count}"] for count in own} for side, own in middle.items()}
    print(f"{'tasks':>5}  {'side':8}  {'s/step':>8}  {'ms/task':>8}  {'peak MiB':>8}")
    for side, own in middle.items():
        for count, value in own.items():
            print(f"{count:5}  {side:8}  {value:8.3f}  {1000 * value / count:8.1f}  {memory[side][count]:8}")
    if options.figure:
        draw(middle, memory, options.figure)
    show(ratios, ABOUT, {"rows": options.rows, "seconds": middle, "peak_mib": memory})


if __name__ == "__main__":
    main()
