"""Writes the table of docs/studies.md that says how many seeds show which difference; `make docs` runs it.

It draws studies instead of training them, so that the truth is known, and judges them as `weft study` does.

The generator: an arm's accuracy with a seed is its true accuracy plus normal noise of `seed_sd`, half of whose variance
is common to all arms with that seed. A row is answered rightly when a normal number falls below the quantile of that
accuracy. The number is the sum of a difficulty that all runs share (75 % of its variance), one that the seeds of an arm
share (5 %), one that the arms with a seed share (12 %), and one of the run's own (8 %). So answers correlate most
between arms with the same seed, as they do on real data: in the study `pair-layer` the correlation of right and wrong
answers was .62 to .67 between seeds, whether or not of one arm, and .83 to .90 between arms with the same seed.
"""

from pathlib import Path

import numpy as np
from scipy import stats

from weft.kinds import KINDS
from weft.kinds.truth import Truth
from weft.study.claims import judge
from weft.study.format import Claim
from weft.study.outcomes import Outcomes, RunOutcome, TaskOutcome

SHARED, OF_ARM, OF_SEED = 0.75, 0.05, 0.12
COMMON = 0.5
"""share of the variance over seeds that is common to all arms"""
CLAIM = Claim(text="b beats a", better="b", worse="a", metric="t.accuracy")
PAGE = Path(__file__).with_name("studies.md")
START, END = "<!-- the table of seeds -->\n", "<!-- end of the table -->"
SEEDS, ROWS, STUDIES = (3, 5, 10, 20), (200, 863, 5000), 60


def simulate(
    accuracies: dict[str, float], draw: np.random.Generator, seeds: int = 3, seed_sd: float = 0.01, rows: int = 863
) -> Outcomes:
    """Outcomes of arms with these true accuracies on a task with two classes."""
    shared = draw.normal(size=rows)
    of_seeds = draw.normal(size=(seeds, rows))
    common = draw.normal(size=seeds)
    targets = draw.integers(0, 2, rows)
    runs = {}
    for arm, accuracy in accuracies.items():
        of_arm = draw.normal(size=rows)
        for seed in range(seeds):
            reached = accuracy + seed_sd * (np.sqrt(COMMON) * common[seed] + np.sqrt(1 - COMMON) * draw.normal())
            hard = np.sqrt(SHARED) * shared + np.sqrt(OF_ARM) * of_arm + np.sqrt(OF_SEED) * of_seeds[seed]
            hard += np.sqrt(1 - SHARED - OF_ARM - OF_SEED) * draw.normal(size=rows)
            answers = np.where(hard < stats.norm.ppf(reached), targets, 1 - targets)
            task = TaskOutcome(Truth(KINDS["classification"], targets, 2), np.eye(2)[answers], ("accuracy",))
            runs[arm, seed] = RunOutcome({"t": task}, {}, {"seconds": 1.0, "tokens": 1.0, "peak_memory": 1.0}, {})
    return Outcomes(runs)


def smallest(seeds: int, rows: int, studies: int = STUDIES) -> float:
    """The difference that a study of this size finds four times out of five, as the middle one of some studies says."""
    draw = np.random.default_rng([seeds, rows])
    found = [judge([CLAIM], simulate({"a": 0.7, "b": 0.7}, draw, seeds, rows=rows))[0] for _ in range(studies)]
    return float(np.median([verdict.smallest for verdict in found if verdict.smallest is not None]))


def table() -> str:
    lines = ["| seeds of each arm | " + " | ".join(f"{rows:,} dev rows" for rows in ROWS) + " |"]
    lines.append("| --- " * (len(ROWS) + 1) + "|")
    lines += [f"| {seeds} | " + " | ".join(f"{smallest(seeds, rows):.3f}" for rows in ROWS) + " |" for seeds in SEEDS]
    return "\n".join(lines) + "\n"


def page() -> str:
    """docs/studies.md with the table as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return before + START + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
