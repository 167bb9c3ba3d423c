"""Several models' scores on the same resamples, all at once.

A metric that is a mean over rows, or made of means, is a matrix product of the resamples' counts with a column for each
model. Others are scored model by model, as `bootstrap` does. The draws are the same as there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.data.labels import Targets
from weft.evaluation import bootstrap
from weft.evaluation.counted import counted
from weft.evaluation.metrics import Predictions, decide

Columns = NDArray[np.float64]
"""[n, models] a value for each row"""
BLOCK = 100
"""resamples that are worked on at a time, so that memory does not grow with their number"""

OF_A_ROW: dict[str, Callable[[Targets, Predictions], NDArray[np.float64]]] = {
    "accuracy": lambda y, p: (decide(p, y) == y).reshape(len(y), -1).all(axis=1).astype(np.float64),
    "class-distance": lambda y, p: np.abs(decide(p, y) - y).astype(np.float64),
    "mse": lambda y, p: (y - p) ** 2,
}
"""the metrics that are a mean over rows"""


def resampled_together(name: str, targets: Targets, models: Sequence[Predictions], purpose: str) -> NDArray[np.float64]:
    """[rounds, models] a metric of each model on every resample; NaN where it is undefined."""
    if name in OF_A_ROW:
        of_rows = np.stack([OF_A_ROW[name](targets, own) for own in models], axis=1)
        return np.concatenate([counts @ of_rows / len(targets) for counts in _blocks(len(targets), purpose)])
    if name == "pearson":
        return _pearson(np.asarray(targets, dtype=np.float64), np.stack(list(models), axis=1), purpose)
    forms = [counted(name, targets, own) for own in models]
    rows = [[form(counts) for form in forms] for block in _blocks(len(targets), purpose) for counts in block]
    return np.array(rows, dtype=np.float64)


def _pearson(y: NDArray[np.float64], p: Columns, purpose: str) -> NDArray[np.float64]:
    y, p = y - y.mean(), p - p.mean(axis=0)  # so that squares of large numbers lose nothing
    found = []
    for counts in _blocks(len(y), purpose):
        n = len(y)
        mean_y, mean_p = (counts @ y / n)[:, None], counts @ p / n
        both = counts @ (y[:, None] * p) / n - mean_y * mean_p
        yy = (counts @ (y * y) / n)[:, None] - mean_y**2
        pp = counts @ (p * p) / n - mean_p**2
        tiny = 1e-12  # one side constant, up to rounding
        defined = (yy > tiny) & (pp > tiny)
        found.append(np.where(defined, both / np.sqrt(np.where(defined, yy * pp, 1.0)), np.nan))
    return np.concatenate(found)


def _blocks(rows: int, purpose: str) -> Iterator[NDArray[np.float64]]:
    drawn = _drawn(rows, purpose, bootstrap.ROUNDS)
    for start in range(0, len(drawn), BLOCK):
        yield drawn[start : start + BLOCK].astype(np.float64)


@lru_cache(maxsize=8)
def _drawn(rows: int, purpose: str, rounds: int) -> NDArray[np.uint16]:
    """[rounds, n] how often each row is drawn; kept, because a study needs the same draws for every arm and metric."""
    return np.stack([counts.astype(np.uint16) for counts in bootstrap.draws(rows, purpose, rounds)])
