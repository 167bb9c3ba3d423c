"""No surgery: the plain sum."""

from typing import Literal

from weft.foundation.config import Config


class NoSurgeryConfig(Config):
    """`sum_i g_i`, taken in one pass for all tasks."""

    name: Literal["none"] = "none"

    def build(self) -> None:
        """Nothing stands between backward and the optimizer."""
