"""What a step is made with: the methods of a recipe, and how its numbers are computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from weft.penalties.base import Penalty
from weft.surgery.base import Surgery
from weft.weighting.base import Weighting


@dataclass(frozen=True)
class Methods:
    """What becomes of the losses and gradients of a window's tasks."""

    weighting: Weighting
    surgery: Surgery | None = None
    layer_factors: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """task -> layer -> what the task's gradient on that layer is multiplied by"""
    penalties: Sequence[Penalty] = ()

    @property
    def keep_apart(self) -> bool:
        """whether the update itself needs per-task gradients; if not, all tasks share one pass"""
        return self.surgery is not None or bool(self.layer_factors)


@dataclass(frozen=True)
class Numerics:
    """Where and how exactly a step computes."""

    device: torch.device
    precision: str = "fp32"
    clip: float | None = None
    """largest norm of the whole gradient; no limit if None"""

    @property
    def mixed(self) -> torch.dtype | None:
        """what autocast computes in, if it is on"""
        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
