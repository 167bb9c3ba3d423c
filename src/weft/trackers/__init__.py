"""Experiment trackers. The union below is the registry: a recipe's `trackers` is a list of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.config import NAME_ALONE
from weft.trackers.mlflow import MlflowConfig
from weft.trackers.tensorboard import TensorboardConfig

TrackerConfig = Annotated[
    TensorboardConfig | MlflowConfig,
    Field(discriminator="name"),
    NAME_ALONE,
]
