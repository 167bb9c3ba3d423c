"""Words of a text: their characters, and the tokens that stand for them.

A text that is given as a list of words is joined by single spaces. Other texts are split at whitespace, and by default
also before and after each punctuation character, as BERT's tokenizer does.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.kinds.base import WordSplit

WordTable = NDArray[np.int32]
"""[words, 4] first character, end, first token and end of each word; both tokens are -1 for a word without a token"""


class WordText(NamedTuple):
    """A text and the character range of each of its words."""

    text: str
    words: list[tuple[int, int]]


def listed_words(cell: str) -> list[str] | None:
    """Return the words of a cell that is a JSON list of words, else None."""
    if not cell.startswith("[") or not cell.endswith("]"):
        return None
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and found and all(isinstance(word, str) for word in found) else None


def plain_text(cell: str) -> str:
    """Return the text of a cell; a list of words is joined by spaces."""
    words = listed_words(cell)
    return cell if words is None else " ".join(words)


def read_words(cell: str, split: WordSplit) -> WordText:
    """Return the text of a cell and its words: those of a list, or else those found by `split`."""
    words = listed_words(cell)
    if words is None:
        return WordText(cell, [match.span() for match in _pattern(split).finditer(cell)])
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return WordText(" ".join(words), [(int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)])


@lru_cache
def _pattern(split: WordSplit) -> re.Pattern[str]:
    if split == "whitespace":
        return re.compile(r"\S+")
    # punctuation and symbols of all scripts; marks such as vowel signs belong to words
    marks = re.escape("".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] in "PS"))
    return re.compile(f"[{marks}]|[^\\s{marks}]+")


def align(words: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> WordTable:
    """Find the tokens that overlap each word, given the character ranges of words and tokens, both in order."""
    table = np.full((len(words), 4), -1, dtype=np.int32)
    if not words:
        return table
    table[:, :2] = words
    if not offsets:
        return table
    starts, ends = np.array(offsets, dtype=np.int32).T
    first = np.searchsorted(ends, table[:, 0], side="right")
    last = np.searchsorted(starts, table[:, 1], side="left")
    table[:, 2] = np.where(first < last, first, -1)
    table[:, 3] = np.where(first < last, last, -1)
    return table
