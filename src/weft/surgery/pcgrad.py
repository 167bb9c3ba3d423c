"""PCGrad: projects out the conflicting part of each task gradient."""

from typing import Literal

from torchjd.aggregation import PCGradWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class PCGradConfig(SurgeryOptions):
    """If `g_i · g_j < 0`, subtract from g_i its projection on g_j, for all j in random order; the update is the *sum*.

    Yu et al., "Gradient Surgery for Multi-Task Learning", 2020. For two tasks the order does not matter.
    """

    name: Literal["pcgrad"] = "pcgrad"

    def build(self) -> Surgery:
        return Surgery(PCGradWeighting())
