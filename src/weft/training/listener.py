"""What follows a run while it trains."""

from typing import Protocol

from weft.evaluation.scoring import Evaluation
from weft.training.checkpoint import Progress
from weft.training.step import StepReport


class TrainListener(Protocol):
    """Callbacks of the training loop, for the terminal and for tests."""

    def started(self, progress: Progress, steps: int) -> None:
        """Called before the first step."""

    def stepped(self, step: int, report: StepReport, seconds: float) -> None:
        """Called after each step."""

    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        """Called after each evaluation."""

    def noted(self, message: str) -> None:
        """Called with each warning."""
