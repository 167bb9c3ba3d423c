"""No surgery: the plain sum."""

from typing import Literal

from weft.surgery.base import SurgeryOptions


class NoSurgeryConfig(SurgeryOptions):
    """`sum_i g_i`, taken in one pass for all tasks."""

    name: Literal["none"] = "none"

    def build(self) -> None:
        """Nothing stands between backward and the optimizer."""
