"""The mean gradient, bent towards the task that gains least."""

from typing import Literal

from pydantic import Field

from weft.foundation.errors import UserError
from weft.surgery.base import Surgery, SurgeryOptions


class CAGradConfig(SurgeryOptions):
    """The vector within `c |g_0|` of the mean gradient g_0 that helps the worst-off task most.

    Liu et al., "Conflict-Averse Gradient Descent for Multi-task Learning", 2021. c = 0 is the mean; from c = 1 on it
    reaches a point where no task can gain without another's loss. Solved by cvxpy in every step.
    """

    name: Literal["cagrad"] = "cagrad"
    c: float = Field(default=0.5, ge=0)
    """how far it may bend"""

    def build(self) -> Surgery:
        try:
            from torchjd.aggregation import CAGradWeighting

            return Surgery(CAGradWeighting(c=self.c))
        except ImportError:
            raise UserError(
                "surgery: 'cagrad' solves a small problem in every step; pip install 'weft[surgery]'"
            ) from None
