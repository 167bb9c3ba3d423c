"""Penalties. The union below is the registry: a recipe's `penalties` is a list of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.penalties.base import PenaltyOptions
from weft.penalties.bregman import BregmanConfig, BregmanWeightsConfig
from weft.penalties.norms import L1Config, L2Config

PenaltyConfig = Annotated[
    L1Config | L2Config | BregmanConfig | BregmanWeightsConfig,
    Field(discriminator="name"),
    Exchangeable(PenaltyOptions),
]
