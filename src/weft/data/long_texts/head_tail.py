"""Head and tail: the middle of a long text is cut out."""

from typing import Literal

import numpy as np
from pydantic import Field

from weft.data.long_texts.base import Ids, LongTextsOptions


class HeadTailConfig(LongTextsOptions):
    """Keep the first and the last tokens of a text that is too long.

    Sun, Qiu, Xu and Huang, How to Fine-Tune BERT for Text Classification? (2019): of 510 tokens, 128 from the head
    and 382 from the tail beat the head alone and the tail alone on long reviews and articles. The default is their
    share.
    """

    name: Literal["head-tail"] = "head-tail"
    head: float = Field(default=0.25, ge=0, le=1)
    """Fraction of the kept tokens that come from the beginning of the text; the others come from its end."""

    def pieces(self, ids: Ids, room: int) -> list[Ids]:
        if len(ids) <= room:
            return [ids]
        first = round(self.head * room)
        return [np.concatenate([ids[:first], ids[len(ids) - (room - first) :]])]

    @property
    def in_words(self) -> str:
        return f"the beginning ({self.head:.0%} of the tokens) and the end are read"
