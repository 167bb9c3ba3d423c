"""The shortest vector between the gradients."""

from typing import Literal

from torchjd.aggregation import MGDAWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class MGDAConfig(SurgeryOptions):
    """The convex combination of smallest norm: weights that sum to 1; it is *shorter than every single gradient*.

    Désidéri, 2012; Sener and Koltun, "Multi-Task Learning as Multi-Objective Optimization", 2018.
    """

    name: Literal["mgda"] = "mgda"

    def build(self) -> Surgery:
        return Surgery(MGDAWeighting())
