"""All weightings. The union below is the registry: a recipe's `weighting` is one of these."""

from typing import Annotated

from weft.variants import NAME_ALONE
from weft.weighting.sum import SumConfig

WeightingConfig = Annotated[SumConfig, NAME_ALONE]
