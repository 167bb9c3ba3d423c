"""What stored outputs save: an epoch of a frozen body with them against the same epoch without.

    python benchmarks/frozen_speed.py [--data-dir DIR] [--rows 1600] [--steps N] [--rounds 3] [--cpu-time]

Both sides train the heads of sentiment and similarity on the same frozen body, step by step with the same rows and the
same dropout masks: "off" runs the body at every step and in every evaluation, "stored" reads the outputs that were
computed once before the first step. A round is one epoch of each side, its steps and its evaluation; checkpoints, which
are the same on both sides, are not part of it.

epoch_vs_off: how many times faster an epoch is. step_vs_off, evaluation_vs_off: the same for its two parts.
fill_vs_off: computing the outputs once, against an epoch without them. apart is the largest difference between any two
weights of the heads, dev_apart that between dev scores, after all rounds; moved is how far training has moved a weight.
stored_mb is the disk space. --rows limits the train rows of each task, --steps the steps of an epoch.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sides import Ratio, alternate, show
from torch import Tensor

from weft.build import assemble
from weft.data.dataset import Dataset
from weft.evaluation.scoring import Evaluation
from weft.foundation.errors import UserError
from weft.inference.evaluate import evaluate_network
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import load_recipe
from weft.training.trainable import set_trainable

ABOUT = {
    "epoch_vs_off": "how many times faster an epoch after the first is",
    "step_vs_off": "the same for its steps",
    "evaluation_vs_off": "the same for its evaluation",
}
TASKS = ("sentiment", "similarity")


class Epochs:
    """One side: its epochs, one after the other."""

    def __init__(self, made: Assembly, steps: int | None, clock: Callable[[], float]) -> None:
        self.made = made
        self.clock = clock
        self.dev: dict[str, Dataset] = {name: task.dev for name, task in made.data.items()}
        set_trainable(made.network, made.recipe.trainable)
        self.outputs = made.frozen_outputs([self.dev])
        start = clock()
        self.notes = self.outputs.enter(0)
        self.fill = clock() - start
        self.length = min(steps or made.plan.epoch_ends[0], made.plan.epoch_ends[0])
        self.epoch = 0
        self.seconds: dict[str, list[float]] = {"step": [], "evaluation": []}
        self.evaluation: Evaluation | None = None
        self.start = self.weights()

    def weights(self) -> dict[str, Tensor]:
        return {name: parameter.detach().clone() for name, parameter in self.made.network.named_parameters()}

    def __call__(self) -> float:
        """Train and evaluate the next epoch; return its seconds."""
        made, plan = self.made, self.made.plan
        first = (0, *plan.epoch_ends)[self.epoch]
        made.network.train()
        start = self.clock()
        for step in range(first, first + self.length):
            made.step.prepare(plan.window(step + 1))
            made.step(plan.window(step), made.rates(step), made.rates.share(step))
        trained = self.clock()
        self.evaluation = evaluate_network(made.network, self.dev, first, made.step.device)
        ended = self.clock()
        self.seconds["step"].append(trained - start)
        self.seconds["evaluation"].append(ended - trained)
        self.epoch += 1
        return ended - start


def build(folder: Path, options: argparse.Namespace, states: str) -> Assembly:
    name = "plain" if options.data_dir else "starter"
    content = load_recipe(name, data_dir=options.data_dir).content()
    content["tasks"] = {task: content["tasks"][task] | {"batch_size": 16} for task in TASKS}
    for task in content["tasks"].values():
        task["data"]["train"] = str(head(Path(task["data"]["train"]), folder, options.rows))
    content |= {"trainable": "frozen", "epochs": options.rounds + 2, "cache": {"states": states}}
    return assemble(load_recipe(content, settings=["optimizer.lr=1e-3"]))


def head(path: Path, folder: Path, rows: int) -> Path:
    """The first rows of a file of one line per row, in a file of its own."""
    target = folder / path.name
    with path.open(encoding="utf-8") as lines:
        target.write_text("".join(line for _, line in zip(range(rows + 1), lines, strict=False)), encoding="utf-8")
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time, for a busy machine")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder), clock)


def run(options: argparse.Namespace, folder: Path, clock: Callable[[], float]) -> None:
    sides = {
        name: Epochs(build(folder, options, states), options.steps, clock)
        for name, states in (("off", "off"), ("stored", "auto"))
    }
    if not sides["stored"].notes:
        raise UserError("nothing was stored: the rows are read once; use more --rounds or fewer --rows")
    measured = alternate(sides, options.rounds)
    off, stored = sides["off"], sides["stored"]
    ratios = {"epoch_vs_off": Ratio.of(measured["off"], measured["stored"])}
    ratios |= {f"{part}_vs_off": Ratio.of(off.seconds[part], stored.seconds[part]) for part in off.seconds}
    weights = [side.weights() for side in (off, stored)]
    scores = [side.evaluation.scores for side in (off, stored) if side.evaluation is not None]
    further = {
        "fill_vs_off": round(stored.fill / float(np.median(measured["off"])), 3),
        "apart": max(float((weights[0][name] - own).abs().max()) for name, own in weights[1].items()),
        "dev_apart": max(
            abs(scores[0][task][key] - value) for task in scores[1] for key, value in scores[1][task].items()
        ),
        "moved": max(float((stored.start[name] - own).abs().max()) for name, own in weights[1].items()),
        "stored_mb": round(stored.outputs.size / 1e6, 1),
        "epoch_steps": off.length,
        "seconds": {name: round(float(np.median(own)), 3) for name, own in measured.items()},
    }
    show(ratios, ABOUT, further)


if __name__ == "__main__":
    main()
