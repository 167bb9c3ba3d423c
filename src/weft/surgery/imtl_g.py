"""IMTL-G: an update with equal projections on all task gradients."""

from typing import Literal

from torchjd.aggregation import IMTLGWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class IMTLGConfig(SurgeryOptions):
    """Weights that sum to 1 and can be negative; the update has the same projection on every normalized gradient.

    Liu et al., "Towards Impartial Multi-Task Learning", 2021.
    """

    name: Literal["imtl-g"] = "imtl-g"

    def build(self) -> Surgery:
        return Surgery(IMTLGWeighting())
