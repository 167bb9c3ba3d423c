"""The methods and numerical settings of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from weft.penalties.base import Penalty
from weft.surgery.base import Surgery
from weft.training.distillation import Distillation
from weft.weighting.base import Weighting


@dataclass(frozen=True)
class Methods:
    """How the losses and gradients of a window's tasks are combined."""

    weighting: Weighting
    """combines the losses"""
    surgery: Surgery | None = None
    """combines per-task gradients on the body; None for their sum"""
    layer_factors: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """task -> layer -> factor on the task's gradient on that layer"""
    penalties: Sequence[Penalty] = ()
    """terms that belong to no task"""
    distillation: Distillation | None = None
    """how much teachers count; None without teachers"""

    @property
    def keep_apart(self) -> bool:
        """whether the update needs per-task gradients; if not, all tasks share one pass"""
        return self.surgery is not None or bool(self.layer_factors)


@dataclass(frozen=True)
class Numerics:
    """Device, precision and gradient clipping of a step."""

    device: torch.device
    """the device of the network"""
    precision: str = "fp32"
    """fp32, fp64, bf16 or fp16"""
    clip: float | None = None
    """maximum norm of the gradient; None for no clipping"""

    @property
    def mixed(self) -> torch.dtype | None:
        """the autocast type; None without mixed precision"""
        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
