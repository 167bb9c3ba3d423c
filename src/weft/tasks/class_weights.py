"""Class weights of the loss."""

import numpy as np
import torch
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.tasks.config import TaskConfig

BETA = 0.999
"""default of `effective`"""


def class_weights(config: TaskConfig, labels: Labels, targets: Targets, task: str) -> Tensor | None:
    """[classes] weights with mean 1 over the train rows, so that the scale of the loss does not change.

    "balanced" is proportional to 1 / n for a class with n train rows. "effective" is proportional to
    `(1 - beta) / (1 - beta^n)`, the inverse of the effective number of rows: Cui et al., "Class-Balanced Loss Based on
    Effective Number of Samples", 2019, who normalize the weights to mean 1 over classes, not over rows. beta = 0 gives
    no weights; beta near 1 gives "balanced".
    """
    if config.class_weights is None:
        return None
    key = f"tasks.{task}.class_weights"
    if config.chosen_loss.of_texts:
        raise UserError(f"{key}: loss = {config.chosen_loss.name!r} scores whole texts, not words; leave it out")
    if not labels.kind.has_one_class:
        raise UserError(f"{key}: is for tasks with one class per row, but the task is a {labels.kind.name}")
    counts = np.bincount(labels.kind.flat(targets).astype(np.int64), minlength=len(labels.names))
    wanted = {"effective": BETA} if config.class_weights == "effective" else config.class_weights
    if wanted == "balanced":
        weights = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
    elif set(wanted) == {"effective"}:  # not a table by class: that has two entries at least
        beta = wanted["effective"]
        if not 0 <= beta < 1:
            raise UserError(f"{key}.effective: found {beta:g}, expected a number from 0 to less than 1")
        weights = np.divide(1 - beta, 1 - beta**counts, out=np.zeros(len(counts)), where=counts > 0)
    else:
        if set(wanted) != set(labels.names):
            raise UserError(f"{key}: expected one weight for each of {', '.join(labels.names)}")
        weights = np.array([wanted[name] for name in labels.names])
    if (weights < 0).any() or not weights @ counts > 0:
        raise UserError(f"{key}: expected weights of at least 0, and at least one above 0")
    return torch.tensor(weights * counts.sum() / (weights @ counts))
