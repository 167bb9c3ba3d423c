"""Projects each gradient on the cone that no task opposes."""

from typing import Literal

from torchjd.aggregation import UPGradWeighting

from weft.surgery.base import Surgery
from weft.variants import Config


class UPGradConfig(Config):
    """Each g_i is replaced by the nearest vector that opposes no task; the update is their *mean*.

    Quinton and Rey, "Jacobian Descent for Multi-Objective Optimization", 2024.
    """

    name: Literal["upgrad"] = "upgrad"

    def build(self) -> Surgery:
        return Surgery(UPGradWeighting())
