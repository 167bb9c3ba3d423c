"""All regularizers. The union below is the registry: a task's `regularizer` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.config import NAME_ALONE
from weft.regularizers.r_drop import RDropConfig
from weft.regularizers.smart import SmartConfig

RegularizerConfig = Annotated[SmartConfig | RDropConfig, Field(discriminator="name"), NAME_ALONE]
