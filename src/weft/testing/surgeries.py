"""The contract of a surgery."""

import torch
from torch import Tensor

from weft.surgery.base import Surgery, SurgeryOptions
from weft.testing.configs import check_config, require, require_close


def check_surgery(config: SurgeryOptions) -> None:
    """Check that a surgery returns one weight per task, keeps the gradient of a single task, and ignores task order."""
    check_config(config)
    surgery = config.build()
    if surgery is None:
        return
    where = type(config).__name__
    alone = torch.tensor([[0.3, -4.0, 1.0]])
    require_close(_combine(surgery, alone), alone[0], f"{where}: changes the gradient of a single task", rtol=0, atol=0)
    require(not _combine(surgery, torch.zeros(3, 4)).any(), f"{where}: combines zero gradients into a nonzero one")
    generator = torch.Generator().manual_seed(3)
    for tasks in (2, 3, 5):
        gradients = torch.randn(tasks, 9, dtype=torch.float64, generator=generator)
        weights = surgery(gradients @ gradients.T)
        require(weights.shape == (tasks,), f"{where}: returns shape {list(weights.shape)}, expected [{tasks}]")
        require(torch.isfinite(weights).all(), f"{where}: returns weights that are not finite: {weights.tolist()}")
    two = torch.randn(2, 9, dtype=torch.float64, generator=generator)
    turned = _combine(surgery, two.flip(0))
    require_close(_combine(surgery, two), turned, f"{where}: depends on the order of tasks")


def _combine(surgery: Surgery, gradients: Tensor) -> Tensor:
    return surgery(gradients @ gradients.T) @ gradients
