"""Adapters. The union below is the registry: a recipe's `adapter` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.bodies.adapters.base import AdapterOptions
from weft.bodies.adapters.bottleneck import BottleneckConfig
from weft.bodies.adapters.lora import LoraConfig
from weft.bodies.adapters.pal import PalConfig
from weft.foundation.components import Exchangeable

AdapterConfig = Annotated[
    LoraConfig | BottleneckConfig | PalConfig, Field(discriminator="name"), Exchangeable(AdapterOptions)
]
