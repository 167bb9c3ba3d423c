"""Studies that are drawn instead of trained, so that the truth is known.

The generator: an arm's accuracy with a seed is its true accuracy plus normal noise of `seed_sd`, drawn anew for every
arm and seed. A row is answered rightly when a normal number falls below the quantile of that accuracy. The number is
`sqrt(.75)` times a difficulty that all arms and seeds share, `sqrt(.1)` times one that the seeds of an arm share, and
`sqrt(.15)` times one of the run's own: arms are correlated, and runs of one arm more so.
"""

import numpy as np
from scipy import stats

from weft.study.outcomes import Outcomes, RunOutcome, TaskOutcome

SHARED, OF_ARM = 0.75, 0.1


def simulate(
    accuracies: dict[str, float], draw: np.random.Generator, seeds: int = 3, seed_sd: float = 0.01, rows: int = 863
) -> Outcomes:
    """Outcomes of arms with these true accuracies on a task with two classes."""
    shared = draw.normal(size=rows)
    targets = draw.integers(0, 2, rows)
    runs = {}
    for arm, accuracy in accuracies.items():
        of_arm = draw.normal(size=rows)
        for seed in range(seeds):
            reached = accuracy + seed_sd * draw.normal()
            hard = np.sqrt(SHARED) * shared + np.sqrt(OF_ARM) * of_arm
            hard += np.sqrt(1 - SHARED - OF_ARM) * draw.normal(size=rows)
            answers = np.where(hard < stats.norm.ppf(reached), targets, 1 - targets)
            task = TaskOutcome(targets, np.eye(2)[answers], ("accuracy",))
            runs[arm, seed] = RunOutcome({"t": task}, {}, {"seconds": 1.0, "tokens": 1.0, "peak_memory": 1.0}, {})
    return Outcomes(runs)
