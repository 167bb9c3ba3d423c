"""A direction on which all gradients project equally."""

from typing import Literal

from torchjd.aggregation import IMTLGWeighting

from weft.surgery.base import Surgery, SurgeryOptions


class IMTLGConfig(SurgeryOptions):
    """Weights that sum to 1, negative ones possible; the update has the same projection on every unit gradient.

    Liu et al., "Towards Impartial Multi-Task Learning", 2021.
    """

    name: Literal["imtl-g"] = "imtl-g"

    def build(self) -> Surgery:
        return Surgery(IMTLGWeighting())
