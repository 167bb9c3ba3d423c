"""All losses. The union below is the registry: a recipe's `loss` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.losses.binary_cross_entropy import BinaryCrossEntropyConfig
from weft.losses.cross_entropy import CrossEntropyConfig
from weft.losses.mse import MeanSquaredErrorConfig
from weft.variants import NAME_ALONE

LossConfig = Annotated[
    CrossEntropyConfig | BinaryCrossEntropyConfig | MeanSquaredErrorConfig,
    Field(discriminator="name"),
    NAME_ALONE,
]
