"""No surgery: the sum of the task gradients."""

from typing import Literal

from weft.surgery.base import SurgeryOptions


class NoSurgeryConfig(SurgeryOptions):
    """`sum_i g_i`, computed in one backward pass for all tasks."""

    name: Literal["none"] = "none"

    def build(self) -> None:
        """Return None: the optimizer uses the gradients of the backward pass."""
