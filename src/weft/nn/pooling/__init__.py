"""Poolings. The union below is the registry: a recipe's `pooling` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.nn.pooling.attention import AttentionConfig
from weft.nn.pooling.base import PoolingOptions
from weft.nn.pooling.cls import Cls, ClsConfig
from weft.nn.pooling.lstm import LstmConfig
from weft.nn.pooling.max import Max, MaxConfig
from weft.nn.pooling.mean import Mean, MeanPoolingConfig
from weft.nn.pooling.pooler import Pooler, PoolerConfig
from weft.nn.pooling.words import WordsConfig

WEIGHTLESS = (Cls, Pooler, Mean, Max)
"""poolings whose vectors depend on the body alone: they have no weights of their own, and no randomness"""

PoolingConfig = Annotated[
    ClsConfig | PoolerConfig | MeanPoolingConfig | MaxConfig | AttentionConfig | LstmConfig | WordsConfig,
    Field(discriminator="name"),
    Exchangeable(PoolingOptions),
]
