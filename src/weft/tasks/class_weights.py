"""How much a row counts by its class."""

import numpy as np
import torch
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.tasks.config import TaskConfig


def class_weights(config: TaskConfig, labels: Labels, targets: Targets, task: str) -> Tensor | None:
    """[classes] whose mean over the train rows is 1, so that the size of the loss stays what it was."""
    if config.class_weights is None:
        return None
    key = f"tasks.{task}.class_weights"
    if not labels.kind.has_one_class:
        raise UserError(f"{key}: rows of a {labels.kind.name} task have no one class to be weighted by")
    counts = np.bincount(targets.astype(np.int64), minlength=len(labels.names))
    if config.class_weights == "balanced":
        weights = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
    else:
        if set(config.class_weights) != set(labels.names):
            raise UserError(f"{key}: expected one weight for each of {', '.join(labels.names)}")
        weights = np.array([config.class_weights[name] for name in labels.names])
    if (weights < 0).any() or not weights @ counts > 0:
        raise UserError(f"{key}: expected weights of at least 0, and not all of them 0")
    return torch.tensor(weights * counts.sum() / (weights @ counts))
