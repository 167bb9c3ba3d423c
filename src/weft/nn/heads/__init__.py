"""Heads. The union below is the registry: a recipe's `head` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.nn.heads.base import HeadOptions
from weft.nn.heads.cosine import CosineConfig, ReluCosineConfig, ScaledCosineConfig
from weft.nn.heads.difference import DifferenceConfig
from weft.nn.heads.linear import LinearConfig
from weft.nn.heads.mlp import HiddenConfig, MlpConfig
from weft.nn.heads.shared_pair import SharedPairConfig
from weft.nn.heads.vectors import UnitVectorsConfig

HeadConfig = Annotated[
    LinearConfig
    | DifferenceConfig
    | HiddenConfig
    | MlpConfig
    | CosineConfig
    | ReluCosineConfig
    | ScaledCosineConfig
    | SharedPairConfig
    | UnitVectorsConfig,
    Field(discriminator="name"),
    Exchangeable(HeadOptions),
]
