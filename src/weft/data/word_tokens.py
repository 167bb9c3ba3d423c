"""Tokenization of texts with their words."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from weft.data.files import Row
from weft.data.readings import Reader, TokenSequence
from weft.data.tokenizer import Tokenizer
from weft.data.words import align, plain_text, read_words
from weft.kinds.base import WordSplit

CHARACTERS = 4_000_000
"""Maximum number of characters tokenized at a time. A longer text is tokenized alone."""


def word_columns(chunk: list[Row], schema: pa.Schema, tokenizer: Tokenizer, split: WordSplit) -> dict[str, pa.Array]:
    """Return the text, ids and words of each text column."""
    found = {}
    for name in [name.removeprefix("words/") for name in schema.names if name.startswith("words/")]:
        read = [read_words(row.values[name], split) for row in chunk]
        texts = [text for text, _ in read]
        tokens = [encoded for part in by_size(texts) for encoded in tokenizer.encode_words(part)]
        tables = [align(words, offsets).ravel() for (_, words), (_, offsets) in zip(read, tokens, strict=True)]
        found[f"column/{name}"] = pa.array(texts, pa.string())
        found[f"ids/{name}"] = pa.array([ids for ids, _ in tokens], schema.field(f"ids/{name}").type)
        found[f"words/{name}"] = pa.array(tables, schema.field(f"words/{name}").type)
    return found


def by_size(texts: list[str]) -> Iterator[list[str]]:
    """Yield parts to tokenize one at a time: the library needs a hundred times the memory of the ids."""
    part: list[str] = []
    characters = 0
    for text in texts:
        if part and characters + len(text) > CHARACTERS:
            yield part
            part, characters = [], 0
        part.append(text)
        characters += len(text)
    yield part


def joined_texts(rows: Iterator[Row], text_columns: list[str]) -> Iterator[Row]:
    """Yield rows with texts that are lists of words joined."""
    for row in rows:
        row.values.update({name: plain_text(row.values[name]) for name in text_columns})
        yield row


def word_rows(texts: Sequence[str], tokenizer: Tokenizer, reader: Reader) -> list[list[TokenSequence]]:
    """Return the token sequence of each text with its words."""
    assert reader.split is not None, "callers ask this for labels of words"
    read = [read_words(text, reader.split) for text in texts]
    tokens = tokenizer.encode_words([text for text, _ in read])
    return [
        reader.sequences(np.array(ids, dtype=np.int32), words=align(words, offsets))
        for (_, words), (ids, offsets) in zip(read, tokens, strict=True)
    ]
