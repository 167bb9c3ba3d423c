"""Programs that draw a run while it goes on. The union below is the registry."""

from typing import Annotated

from pydantic import Field

from weft.trackers.mlflow import MlflowConfig
from weft.trackers.tensorboard import TensorboardConfig
from weft.variants import NAME_ALONE

TrackerConfig = Annotated[
    TensorboardConfig | MlflowConfig,
    Field(discriminator="name"),
    NAME_ALONE,
]
