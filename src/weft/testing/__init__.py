"""Checks of the component contracts, for the test suites of custom components.

Each function takes a config, as a recipe would build it, and raises AssertionError with the violated rule.
"""

from weft.testing.adapters import check_adapter
from weft.testing.heads import check_head
from weft.testing.losses import check_loss
from weft.testing.penalties import check_penalty
from weft.testing.poolings import check_pooling
from weft.testing.regularizers import check_regularizer
from weft.testing.schedules import check_schedule
from weft.testing.surgeries import check_surgery
from weft.testing.weightings import check_weighting

__all__ = [
    "check_adapter",
    "check_head",
    "check_loss",
    "check_penalty",
    "check_pooling",
    "check_regularizer",
    "check_schedule",
    "check_surgery",
    "check_weighting",
]
