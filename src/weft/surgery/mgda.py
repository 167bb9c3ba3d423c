"""MGDA: the minimum-norm convex combination of the task gradients."""

from typing import Literal

from torchjd.aggregation import MGDAWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class MGDAConfig(SurgeryOptions):
    """The convex combination with minimum norm: weights sum to 1, and it is *no longer than any task gradient*.

    Désidéri, 2012; Sener and Koltun, "Multi-Task Learning as Multi-Objective Optimization", 2018.
    """

    name: Literal["mgda"] = "mgda"

    def build(self) -> Surgery:
        return Surgery(MGDAWeighting())
