"""Gradients made orthogonal and equally long."""

from typing import Literal

from torchjd.aggregation import AlignedMTLWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class AlignedMTLConfig(SurgeryOptions):
    """The Gramian's principal components are brought to the scale of the smallest; the update is their *mean*.

    Senushkin et al., "Independent Component Alignment for Multi-Task Learning", 2023.
    """

    name: Literal["aligned-mtl"] = "aligned-mtl"

    def build(self) -> Surgery:
        return Surgery(AlignedMTLWeighting())
