"""Aligned-MTL: aligns the principal components of the task gradients."""

from typing import Literal

from torchjd.aggregation import AlignedMTLWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class AlignedMTLConfig(SurgeryOptions):
    """Rescale the principal components of the gradients to the scale of the smallest; the update is their *mean*.

    Senushkin et al., "Independent Component Alignment for Multi-Task Learning", 2023.
    """

    name: Literal["aligned-mtl"] = "aligned-mtl"

    def build(self) -> Surgery:
        return Surgery(AlignedMTLWeighting())
