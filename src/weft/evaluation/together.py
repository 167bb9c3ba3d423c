"""Vectorized bootstrap: scores of several models on the same resamples.

A metric that is a function of means over rows is a matrix product of the resamples' counts with columns for each model.
Other metrics are computed model by model, as in `bootstrap`. The draws are the same as in `bootstrap`.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.evaluation import bootstrap
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Predictions, Truth

BLOCK = 100
"""resamples per block, so that memory does not grow with the number of resamples"""


def resampled_together(name: str, models: Sequence[tuple[Truth, Predictions]], purpose: str) -> NDArray[np.float64]:
    """[rounds, models] a metric of each model on every resample; NaN where it is undefined.

    All models are scored on the same rows; their truths differ in decision thresholds only.
    """
    metric, truth = METRICS[name], models[0][0]
    means = metric.form(truth).means
    if means is not None:
        columns = np.stack([means.columns(own, answers) for own, answers in models], axis=1)  # [n, models, k]
        flat, shape = columns.reshape(len(truth), -1), columns.shape[1:]
        blocks = (counts @ flat / len(truth) for counts in _blocks(len(truth), purpose))
        return np.concatenate([means.finish(block.reshape(-1, *shape)) for block in blocks])
    forms = [metric.weighted(own, answers) for own, answers in models]
    rows = [[form(counts) for form in forms] for block in _blocks(len(truth), purpose) for counts in block]
    return np.array(rows, dtype=np.float64)


def _blocks(rows: int, purpose: str) -> Iterator[NDArray[np.float64]]:
    drawn = _drawn(rows, purpose, bootstrap.ROUNDS)
    for start in range(0, len(drawn), BLOCK):
        yield drawn[start : start + BLOCK].astype(np.float64)


@lru_cache(maxsize=8)
def _drawn(rows: int, purpose: str, rounds: int) -> NDArray[np.uint16]:
    """[rounds, n] count of each row in each resample; cached, because every arm and metric of a study needs them."""
    return np.stack([counts.astype(np.uint16) for counts in bootstrap.draws(rows, purpose, rounds)])
