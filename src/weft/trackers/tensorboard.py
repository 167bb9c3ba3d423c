"""TensorBoard tracker: event files in the run folder. `tensorboard --logdir RUNS` shows all runs below RUNS."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.trackers.base import Tracker


class Tensorboard(Tracker):
    """Writes TensorBoard event files."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError(
                "trackers: 'tensorboard' is not installed; pip install \"weft[track]\", or leave it out"
            ) from None
        self.folder = folder
        self.open = SummaryWriter
        self.writer: Any = None

    def log(self, step: int, values: dict[str, float]) -> None:
        if self.writer is None:
            # a resumed run repeats the steps after its last checkpoint: TensorBoard discards the earlier events
            self.writer = self.open(str(self.folder), purge_step=step)
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class TensorboardConfig(Config):
    name: Literal["tensorboard"] = "tensorboard"

    def build(self, run: Path, title: str, settings: dict[str, Any], allowed: Sequence[str] = ()) -> Tensorboard:  # noqa: ARG002
        return Tensorboard(run / "tensorboard")
