"""Infers which columns are texts, which are labels, and the kind of each label."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.data.columns import LABEL_WORDS, Column, name_words, shared_words
from weft.foundation.errors import UserError
from weft.kinds.cells import as_float
from weft.recipes.init.profile import Profile

PAIRS = [("1", "2"), ("a", "b"), ("first", "second"), ("left", "right"), ("premise", "hypothesis")]
"""words that distinguish the column names of the two texts of a pair"""
ALIKE_LENGTH, ALIKE_WORDS = 2.0, 0.25
"""two text columns may be a pair up to this ratio of mean lengths, and from this fraction of shared vocabulary"""
METADATA_WORDS = {"source", "lang", "language", "split", "fold", "author", "user", "country", "city", "file"}


@dataclass(frozen=True)
class TextColumns:
    """The text columns of a file: one, or two for a pair."""

    columns: tuple[str, ...]
    why: str
    doubt: str | None = None


@dataclass(frozen=True)
class Label:
    """The label of one task: one column, or several columns of 0 and 1."""

    columns: tuple[str, ...]
    kind: str
    why: str
    why_kind: str
    doubt: str | None = None


def choose_texts(found: Profile) -> TextColumns:
    """Choose the text columns; raises UserError if no column looks like text."""
    if found.tagged is not None:
        return TextColumns(found.tagged[:1], f"lists of words, as long as those of {found.tagged[1]}")
    candidates = [column for column in found.columns.values() if column.is_text]
    if not candidates:
        raise UserError(
            f"{found.path}: no column looks like text (several words, rows that differ); the columns are "
            f"{_quoted(found.columns)}. Write a recipe by hand: `weft recipes starter` prints one to copy"
        )
    for one in candidates:
        for other in candidates:
            if _is_pair(one.name, other.name):
                return TextColumns(
                    (one.name, other.name), f"{one.name} and {other.name} look like the two texts of a pair"
                )
    by_length = sorted(candidates, key=lambda column: -column.mean_words)
    longest, others = by_length[0], by_length[1:]
    if not others:
        doubt = f"{longest.name!r} contains lists, which are read as plain text, brackets included"
        is_list = longest.listed == longest.filled
        return TextColumns((longest.name,), f"{longest.mean_words:.0f} words a row", doubt if is_list else None)
    second = others[0]
    if longest.mean_words <= ALIKE_LENGTH * second.mean_words and shared_words(longest, second) >= ALIKE_WORDS:
        names = tuple(column.name for column in candidates if column in (longest, second))
        return TextColumns(
            names,
            "two texts of similar length and vocabulary: a pair",
            f"{_quoted(names)} have similar length and vocabulary and were chosen as the two texts of a pair; "
            "if the task reads one text, delete `text2` and `reading`",
        )
    rest = [column.name for column in others]
    return TextColumns(
        (longest.name,),
        f"{longest.mean_words:.0f} words a row; longer than {', '.join(rest)}",
        f"{_quoted(rest)} also contain{'s' if len(rest) == 1 else ''} text and will not be read; "
        "if the task reads two texts, name the second with `text2` and choose a `reading`",
    )


def _is_pair(one: str, other: str) -> bool:
    """Whether two names differ in exactly one word, by a pair such as first and second."""
    first, second = (re.findall(r"\d|[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", n).lower()) for n in (one, other))
    if len(second) == len(first) + 1:  # text and text2
        return second[:-1] == first and second[-1] == "2"
    different = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    return len(first) == len(second) and len(different) == 1 and different[0] in PAIRS


def choose_labels(found: Profile, texts: Sequence[str]) -> list[Label]:
    """Choose every column that can be a label, at least one. Columns of 0 and 1 become one multilabel task."""
    tags = [] if found.tagged is None or found.tagged[0] not in texts else [_tags(found, found.tagged[1])]
    taken = [*texts, *(column for label in tags for column in label.columns)]
    candidates = [column for column in found.columns.values() if column.name not in taken and column.could_be_label]
    if not candidates and tags:
        return tags
    if not candidates and len(texts) == 2:
        doubt = "no column looks like a label, so every row is taken for a match: two texts that belong together"
        return [Label((), "matches", "", "two texts and no label", doubt)]
    if not candidates:
        raise UserError(f"{found.path}: no column looks like a label; the columns are {_quoted(found.columns)}")
    others = [column for column in candidates if not METADATA_WORDS & set(name_words(column.name))] or candidates
    chosen = [column for column in others if column.is_class_like or column.is_named_label] or [
        min(others, key=lambda column: len(column.counts))
    ]
    flags = [column for column in chosen if column.is_flag and not _is_plain_label(column)]
    flags = flags if len(flags) > 1 else []
    named = any(column.is_named_label for column in chosen)
    labels = [
        *tags,
        *(_one_label(column, alone=len(chosen) == 1 and not tags) for column in chosen if column not in flags),
    ]
    return [*labels, *([_flags(flags, named=bool(labels) and named)] if flags else [])]


def _tags(found: Profile, column: str) -> Label:
    names = sorted(found.columns[column].parts)
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return Label((column,), "tags", "a list of tags, one for each word", f"{len(names)} tags of words: {shown}")


def _is_plain_label(column: Column) -> bool:
    """Whether the name, such as `label` or `is_duplicate`, marks the only label."""
    return all(word in (*LABEL_WORDS, "is") for word in name_words(column.name))


def _one_label(column: Column, *, alone: bool) -> Label:
    kind, why_kind = choose_kind(column)
    if column.is_named_label:
        return Label((column.name,), kind, "by its name", why_kind)
    values = len(column.parts) if column.is_several else len(column.counts)
    why = f"{values} different values" if alone else f"{values} different values: a separate task"
    doubt = f"{column.name!r} became a task because it has {values} different values; delete it if it is not a label"
    return Label((column.name,), kind, why, why_kind, None if alone else doubt)


def _flags(columns: list[Column], *, named: bool) -> Label:
    names = tuple(column.name for column in columns)
    doubt = f"{_quoted(names)} contain 0 and 1 and became one multilabel task; remove those that are not labels"
    why_kind = f"{len(names)} columns of 0 and 1, one for each label"
    return Label(names, "multilabel", "a row has the labels whose columns are 1", why_kind, doubt if named else None)


def choose_kind(column: Column) -> tuple[str, str]:
    """Choose the kind of a label; returns the kind and the reason."""
    values = list(column.counts)
    shown = ", ".join(sorted(values, key=lambda v: (as_float(v) or 0.0, v))[:6]) + (", ..." if len(values) > 6 else "")
    if column.is_several:
        return "multilabel", f"several labels in one cell, out of {', '.join(sorted(column.parts)[:6])}"
    if not column.is_numeric:
        return "classification", f"{len(values)} names: {shown}"
    numbers = sorted(float(value) for value in values)
    if len(values) == 2:
        return "classification", f"two values: {shown}"
    whole = not column.overflown and all(number.is_integer() for number in numbers)
    if whole and len(values) <= 10 and numbers[-1] - numbers[0] < 12:
        return "ordinal", f'integers in order: {shown}; use "classification" if the order has no meaning'
    if column.overflown:
        return "regression", "numbers with many different values"
    return "regression", f"numbers from {numbers[0]:g} to {numbers[-1]:g}"


def _quoted(names: Sequence[str] | dict[str, Column]) -> str:
    return ", ".join(repr(name) for name in names)
