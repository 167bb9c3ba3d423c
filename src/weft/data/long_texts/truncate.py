"""Truncation: the end of a long text is cut off."""

from typing import Literal

from weft.data.long_texts.base import Ids, LongTextsOptions


class TruncateConfig(LongTextsOptions):
    """Keep the first tokens of a text that is too long."""

    name: Literal["truncate"] = "truncate"

    def pieces(self, ids: Ids, room: int) -> list[Ids]:
        return [ids[:room]]

    @property
    def in_words(self) -> str:
        return "the beginning is read"


TRUNCATE = TruncateConfig()
