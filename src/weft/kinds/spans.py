"""Spans of words from one tag per word, by the rules of seqeval's default mode, which are those of conlleval.

A span starts at B, S or U, at a change of type, and at I, E or L after a word outside. It ends before the next start,
before a word outside, and after E, S, L or U. So a span of predicted tags does not need a B. BILOU is read as BIOES: L
is E, and U is S. Tags without such prefixes are plain: a run of words with the same tag is one span.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

OUTSIDE = "O"
"""the tag of words outside of all spans"""
PREFIXED = re.compile(r"([BIESLU])(?:-(.+))?", re.DOTALL)
AS_BIOES = {"L": "E", "U": "S"}


class WordSpan(NamedTuple):
    """Words `start` to `end`, without the last, of one type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class Scheme:
    """How the tags of a task mark spans."""

    prefixes: tuple[str, ...]
    """position of a word with each tag: O, B, I, E or S"""
    types: tuple[str, ...]
    """type of the span of each tag; empty for O"""

    @property
    def found(self) -> tuple[str, ...]:
        """the types of spans, in the order of the tags"""
        return tuple(dict.fromkeys(name for name in self.types if name))


@lru_cache(maxsize=64)
def scheme_of(names: tuple[str, ...]) -> Scheme:
    """Return the scheme of these tags: prefixed (BIO, BIOES, BILOU) if all tags are, else plain."""
    matches = [PREFIXED.fullmatch(name) for name in names]
    plain = any(match is None and name != OUTSIDE for name, match in zip(names, matches, strict=True))
    prefixes, types = [], []
    for name, match in zip(names, matches, strict=True):
        if name == OUTSIDE:
            prefixes.append(OUTSIDE)
            types.append("")
        elif plain or match is None:
            prefixes.append("I")
            types.append(name)
        else:
            prefixes.append(AS_BIOES.get(match[1], match[1]))
            types.append(match[2] or "_")
    return Scheme(tuple(prefixes), tuple(types))


def spans_of(tags: Iterable[int], names: tuple[str, ...]) -> list[WordSpan]:
    """Return the spans of one text, given the number of each word's tag."""
    scheme = scheme_of(names)
    found: list[WordSpan] = []
    before, kind, start = OUTSIDE, "", 0
    numbers = list(tags)
    for at, number in enumerate(numbers):
        prefix, own = scheme.prefixes[number], scheme.types[number]
        is_inside = before != OUTSIDE
        starts = prefix in ("B", "S") or (prefix != OUTSIDE and (before in (OUTSIDE, "E", "S") or own != kind))
        if is_inside and (starts or prefix == OUTSIDE):
            found.append(WordSpan(kind, start, at))
        if starts:
            start = at
        before, kind = prefix, own
    if before != OUTSIDE:
        found.append(WordSpan(kind, start, len(numbers)))
    return found


def bio_tags(words: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int, str]]) -> list[str]:
    """Return BIO tags of words, given the character ranges of words and of labelled spans.

    A word belongs to the span that it overlaps. Raise ValueError if a span overlaps no word, or two spans share a word.
    """
    tags = [OUTSIDE] * len(words)
    for start, end, label in spans:
        inside = [i for i, (first, last) in enumerate(words) if first < end and last > start]
        if not inside:
            raise ValueError(f"the span {start} to {end} ({label}) contains no word of the text")
        if any(tags[i] != OUTSIDE for i in inside):
            raise ValueError(f"the span {start} to {end} ({label}) shares a word with another span")
        for i in inside:
            tags[i] = f"{'B' if i == inside[0] else 'I'}-{label}"
    return tags
