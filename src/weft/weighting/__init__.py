"""Loss weightings. The union below is the registry: a recipe's `weighting` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.weighting.base import WeightingOptions
from weft.weighting.dwa import DynamicWeightAverageConfig
from weft.weighting.fixed import FixedConfig
from weft.weighting.mean import MeanWeightingConfig
from weft.weighting.normalized import NormalizedConfig
from weft.weighting.random import RandomConfig
from weft.weighting.sum import SumConfig
from weft.weighting.uncertainty import UncertaintyConfig

WeightingConfig = Annotated[
    SumConfig
    | MeanWeightingConfig
    | FixedConfig
    | NormalizedConfig
    | UncertaintyConfig
    | DynamicWeightAverageConfig
    | RandomConfig,
    Field(discriminator="name"),
    Exchangeable(WeightingOptions),
]
