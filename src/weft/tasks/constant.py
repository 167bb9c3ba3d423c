"""What a task's loss is worth: the loss of the best answer that does not look at the text."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from weft.kinds.truth import Targets
from weft.losses.base import Loss
from weft.nn.heads.base import Bounds

MOST_ROWS = 2000
"""rows that are looked at, evenly spaced; a constant fits many rows as well as all"""
LEAST = 1e-3
"""a task whose rows nearly all have one label must not count a thousand times"""
DIFFERENT = 10.0
"""how much larger than another's a loss may be before a plain sum ignores the other"""


def constant_loss(loss: Loss, targets: Targets, bounds: Bounds) -> float:
    """The mean loss of the best constant output: the entropy of the classes, the variance of numbers.

    It is found by minimizing the loss itself, so it holds for every loss and for heads that give a number in `bounds`.
    """
    rows = np.linspace(0, len(targets) - 1, min(len(targets), MOST_ROWS)).astype(int)
    target = torch.from_numpy(np.ascontiguousarray(targets[rows]))
    free = torch.zeros(loss.outputs, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=100, line_search_fn="strong_wolfe")

    def mean_loss() -> Tensor:
        output = free if bounds is None else bounds[0] + (bounds[1] - bounds[0]) * free.sigmoid()
        value: Tensor = loss(output.expand(len(rows), -1), target).mean()
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
    """A warning where a plain sum would hardly listen to some of the tasks that train."""
    trained = {task: loss for task, loss in losses.items() if task not in untrained}
    if not trained or max(trained.values()) <= DIFFERENT * min(trained.values()):
        return []
    shown = ", ".join(f"{task} {loss:.2g}" for task, loss in sorted(trained.items(), key=lambda item: -item[1]))
    return [
        f"the tasks' losses differ in scale by more than {DIFFERENT:g} (of a constant answer: {shown}), and a sum "
        'follows the largest; weighting = "normalized" counts every task alike'
    ]
