"""Ways to read long texts. The union below is the registry: a task's `long_texts` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.data.long_texts.head_tail import HeadTailConfig
from weft.data.long_texts.truncate import TruncateConfig
from weft.data.long_texts.windows import WindowsConfig
from weft.foundation.config import NAME_ALONE

LongTextsConfig = Annotated[
    TruncateConfig | HeadTailConfig | WindowsConfig,
    Field(discriminator="name"),
    NAME_ALONE,
]
