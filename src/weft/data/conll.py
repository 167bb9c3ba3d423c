"""Files with one word and its tags per line, and a blank line between texts, as in the CoNLL shared tasks."""

import json
from collections.abc import Iterator
from typing import IO

from weft.data.problems import Problems

ENDINGS = (".conll", ".bio")
TOKENS, TAGS = "tokens", "tags"
"""Names of the columns: the first and the last of each line. Columns between them are called "2", "3", ..."""
START = "-DOCSTART-"
"""First word of a line that separates documents; it is no text."""


def conll_texts(handle: IO[str], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the first line and the columns of each text, as JSON lists. Lines are divided at tabs or spaces."""
    words: list[list[str]] = []
    start = 1
    bad = False
    for number, text in enumerate(handle, 1):
        fields = text.split("\t") if "\t" in text.strip() else text.split()
        fields = [field.strip() for field in fields] if text.strip() else []
        if fields and fields[0] == START:
            fields = []
        if not fields:
            if words and not bad:
                yield start, _columns(words)
            words, bad = [], False
            continue
        if not words:
            start = number
        if len(fields) < 2 or (words and len(fields) != len(words[0])):
            expected = f"{len(words[0])}, as the line before" if words else "a word and its tag at least"
            problems.add(number, "wrong number of fields", f"has {len(fields)} fields, expected {expected}")
            bad = True
        words.append(fields)
    if words and not bad:
        yield start, _columns(words)


def _columns(words: list[list[str]]) -> dict[str, str]:
    names = [TOKENS, *(str(number) for number in range(2, len(words[0]))), TAGS]
    columns = zip(*words, strict=True)
    return {name: json.dumps(column, ensure_ascii=False) for name, column in zip(names, columns, strict=True)}
