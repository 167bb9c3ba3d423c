"""CAGrad: the mean gradient, corrected in favour of the task that improves least."""

from typing import Literal

from pydantic import Field

from weft.foundation.errors import UserError
from weft.surgery.base import Surgery, SurgeryOptions


class CAGradConfig(SurgeryOptions):
    """The vector within `c |g_0|` of the mean gradient g_0 that maximizes the smallest improvement of a task.

    Liu et al., "Conflict-Averse Gradient Descent for Multi-task Learning", 2021. c = 0 is the mean gradient; for
    c >= 1 it converges to a Pareto-stationary point. Solved with cvxpy in every step.
    """

    name: Literal["cagrad"] = "cagrad"
    c: float = Field(default=0.5, ge=0)
    """Maximum distance from the mean gradient, relative to its norm."""

    def build(self) -> Surgery:
        try:
            from torchjd.aggregation import CAGradWeighting

            return Surgery(CAGradWeighting(c=self.c))
        except ImportError:
            raise UserError(
                "surgery: 'cagrad' needs cvxpy, which is not installed; pip install 'weft[surgery]'"
            ) from None
