"""Class weights of the loss."""

import numpy as np
import torch
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.tasks.config import TaskConfig


def class_weights(config: TaskConfig, labels: Labels, targets: Targets, task: str) -> Tensor | None:
    """[classes] weights with mean 1 over the train rows, so that the scale of the loss does not change."""
    if config.class_weights is None:
        return None
    key = f"tasks.{task}.class_weights"
    if config.chosen_loss.of_texts:
        raise UserError(f"{key}: loss = {config.chosen_loss.name!r} scores whole texts, not words; leave it out")
    if not labels.kind.has_one_class:
        raise UserError(f"{key}: is for tasks with one class per row, but the task is a {labels.kind.name}")
    counts = np.bincount(labels.kind.flat(targets).astype(np.int64), minlength=len(labels.names))
    if config.class_weights == "balanced":
        weights = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
    else:
        if set(config.class_weights) != set(labels.names):
            raise UserError(f"{key}: expected one weight for each of {', '.join(labels.names)}")
        weights = np.array([config.class_weights[name] for name in labels.names])
    if (weights < 0).any() or not weights @ counts > 0:
        raise UserError(f"{key}: expected weights of at least 0, and at least one above 0")
    return torch.tensor(weights * counts.sum() / (weights @ counts))
