"""What gradient surgery and SMART cost: seconds of a step on the same windows, one against the other.

    python benchmarks/methods_cost.py [--data-dir DIR] [--steps 10] [--rounds 3]

pcgrad_vs_apart: PCGrad against the tasks' gradients kept apart and summed. pcgrad_vs_joint: against all tasks in one
pass. smart_vs_plain: SMART on all tasks against the same step without. Lower is better.
"""

import argparse
import resource
import time
from pathlib import Path

from sides import alternate, ratio, recipe_for, show

from weft.experiment import Assembly, assemble
from weft.recipe import load_recipe

SIDES = {
    "joint": [],
    "apart": ["tasks.*.layer_factors={ layers = [0] }"],  # factors of one: kept apart, then summed
    "pcgrad": ["surgery=pcgrad"],
    "smart": ["tasks.*.regularizer=smart"],
}


def seconds(made: Assembly, steps: int) -> float:
    made.network.train()
    made.step(made.plan.window(0), 1e-5)
    start = time.perf_counter()
    for step in range(1, 1 + steps):
        made.step(made.plan.window(step), 1e-5)
    return (time.perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    name, settings = recipe_for(options.data_dir)
    made = {
        side: assemble(load_recipe(name, settings=[*settings, *own], data_dir=options.data_dir))
        for side, own in SIDES.items()
    }
    measured = alternate(
        {side: lambda one=one: seconds(one, options.steps) for side, one in made.items()}, options.rounds
    )
    result = {
        "pcgrad_vs_apart": ratio(measured["pcgrad"], measured["apart"]),
        "pcgrad_vs_joint": ratio(measured["pcgrad"], measured["joint"]),
        "smart_vs_plain": ratio(measured["smart"], measured["joint"]),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    rows = [["comparison", "ratio", "lowest and highest round"]]
    for key in ("pcgrad_vs_apart", "pcgrad_vs_joint", "smart_vs_plain"):
        entry = result[key]
        rows.append([key, f"{entry['ratio']:.2f}", f"{entry['low']:.2f} .. {entry['high']:.2f}"])
    show(rows, result)


if __name__ == "__main__":
    main()
