"""Regularizers. The union below is the registry: a task's `regularizer` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.regularizers.base import RegularizerOptions
from weft.regularizers.r_drop import RDropConfig
from weft.regularizers.smart import SmartConfig

RegularizerConfig = Annotated[SmartConfig | RDropConfig, Field(discriminator="name"), Exchangeable(RegularizerOptions)]
