"""All heads. The union below is the registry: a recipe's `head` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.nn.heads.cosine import CosineConfig
from weft.nn.heads.linear import LinearConfig
from weft.variants import NAME_ALONE

HeadConfig = Annotated[
    LinearConfig | CosineConfig,
    Field(discriminator="name"),
    NAME_ALONE,
]
