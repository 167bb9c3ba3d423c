"""The loss of the best constant output, a reference for the scale of a task's loss."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from weft.kinds.truth import Targets
from weft.losses.base import Loss
from weft.nn.heads.base import Bounds

MOST_ROWS = 2000
"""maximum number of rows, evenly spaced; enough to fit a constant"""
LEAST = 1e-3
"""lower bound: a task whose rows nearly all have the same label must not get a very large weight"""
DIFFERENT = 10.0
"""ratio of losses above which the sum neglects the smaller one"""


def constant_loss(loss: Loss, targets: Targets, bounds: Bounds, batch_size: int) -> float:
    """Return the mean loss of the best constant output: the entropy of the classes, the variance of numbers.

    It is found by minimizing the loss, so every loss is supported, and heads with outputs within `bounds`. A loss that
    sees the batch gets one batch of `batch_size` rows.
    """
    # `targets` has one entry per row, or per word for labels of words
    most = batch_size if loss.sees_batch else MOST_ROWS
    rows = np.linspace(0, len(targets) - 1, min(len(targets), most)).astype(int)
    target = torch.from_numpy(np.ascontiguousarray(targets[rows]))
    shape = (2, 1) if loss.reads_vectors else (loss.outputs,)
    free = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=100, line_search_fn="strong_wolfe")

    def mean_loss() -> Tensor:
        output = free if bounds is None else bounds[0] + (bounds[1] - bounds[0]) * free.sigmoid()
        value: Tensor = loss(output.expand(len(rows), *shape), target).mean()
        return value

    def closure() -> float:
        optimizer.zero_grad()
        value = mean_loss()
        value.backward()
        return float(value.detach())

    with torch.enable_grad():
        optimizer.step(closure)
    return max(float(mean_loss().detach()), LEAST)


def scale_notes(losses: Mapping[str, float], untrained: Sequence[str]) -> list[str]:
    """Return a warning if the losses of trained tasks differ so much that their sum neglects some of them."""
    trained = {task: loss for task, loss in losses.items() if task not in untrained}
    if not trained or max(trained.values()) <= DIFFERENT * min(trained.values()):
        return []
    shown = ", ".join(f"{task} {loss:.2g}" for task, loss in sorted(trained.items(), key=lambda item: -item[1]))
    return [
        f"the tasks' losses differ in scale by more than {DIFFERENT:g} (of a constant prediction: {shown}), so the "
        'largest may dominate the steps that they share; schedule = "alternating" gives every task steps of its own, '
        "log.conflicts_every shows the norm of each task's gradient"
    ]
