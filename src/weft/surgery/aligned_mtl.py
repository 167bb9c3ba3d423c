"""Gradients made orthogonal and equally long."""

from typing import Literal

from torchjd.aggregation import AlignedMTLWeighting

from weft.surgery.base import Surgery
from weft.variants import Config


class AlignedMTLConfig(Config):
    """The Gramian's principal components are brought to the scale of the smallest; the update is their *mean*.

    Senushkin et al., "Independent Component Alignment for Multi-Task Learning", 2023.
    """

    name: Literal["aligned-mtl"] = "aligned-mtl"

    def build(self) -> Surgery:
        return Surgery(AlignedMTLWeighting())
