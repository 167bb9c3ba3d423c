"""Two tokenized files as one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.data.long_texts.base import Ids
from weft.data.tokens import TokenizedFile, hash_of
from weft.data.words import WordTable


class JoinedFile(TokenizedFile):
    """The rows of one file, then those of another with the same text columns."""

    def __init__(self, first: TokenizedFile, second: TokenizedFile, text_columns: list[str]) -> None:
        self.first, self.second = first, second
        self.source = first.source
        self.key = hash_of(first.key, second.key)
        kept = ["line", *(f"column/{name}" for name in text_columns)]
        self.table = pa.concat_tables([first.table.select(kept), second.table.select(kept)])
        self.masked, self.skipped, self.dialect = first.masked, first.skipped, first.dialect

    def ids(self, column: str, row: int) -> Ids:
        start = len(self.first)
        return self.first.ids(column, row) if row < start else self.second.ids(column, row - start)

    def words(self, column: str, row: int) -> WordTable | None:
        start = len(self.first)
        return self.first.words(column, row) if row < start else self.second.words(column, row - start)

    def texts_key(self, columns: Sequence[str]) -> str:
        return hash_of(self.first.texts_key(columns), self.second.texts_key(columns))

    def lengths(self, column: str) -> NDArray[np.int64]:
        return np.concatenate([self.first.lengths(column), self.second.lengths(column)])
