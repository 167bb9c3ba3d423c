"""Texts on which the answers of the old model hold the old tasks, for `weft add --keep distill`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weft.data.files import read_rows
from weft.data.frames import GivenFrames, frame_of
from weft.data.problems import Problems
from weft.data.tables import STANDARD
from weft.data.tokenizer import Tokenizer
from weft.foundation.errors import UserError
from weft.foundation.randomness import generator
from weft.recipes.recipe import Recipe
from weft.tasks.building import task_files
from weft.tasks.config import TaskConfig

Row = TypeVar("Row", str, tuple[str, str])
Texts = tuple[str, ...]
"""one text, or the two texts of a pair"""
UNRELATED = 1 / 3
"""share of the made pairs whose second text is another text, unchanged"""


@dataclass(frozen=True)
class HeldTexts:
    """Distinct texts and pairs of texts."""

    singles: list[str]
    pairs: list[tuple[str, str]]

    @staticmethod
    def of(rows: Iterable[Texts], seed: int, most: int | None = None) -> "HeldTexts":
        """Collect the texts of rows, and their pairs; single texts are also paired with each other.

        `most` is the maximum number of texts, and of pairs, which are then drawn at random.
        """
        kept = [row for row in rows if all(text.strip() for text in row)]
        singles = list(dict.fromkeys(text for row in kept for text in row))
        alone = list(dict.fromkeys(row[0] for row in kept if len(row) == 1))
        pairs = dict.fromkeys((row[0], row[1]) for row in kept if len(row) == 2)
        pairs |= dict.fromkeys(made_pairs(alone, seed))
        return HeldTexts(_drawn(singles, most, seed, "texts"), _drawn(list(pairs), most, seed, "pairs"))

    def frames(self, tasks: Mapping[str, TaskConfig]) -> GivenFrames:
        """Return the rows of each task, under the column names of its files."""
        found = {}
        for name, task in tasks.items():
            columns = _columns(task)
            rows: Sequence[Texts] = self.pairs if len(columns) == 2 else [(text,) for text in self.singles]
            table = {column: [row[side] for row in rows] for side, column in enumerate(columns)}
            found[name] = {"unlabelled": frame_of(table, f"{name}.unlabelled")}
        return found


def made_pairs(texts: Sequence[str], seed: int) -> Iterator[tuple[str, str]]:
    """Yield a pair of each text and a second one that has from none to all of its words.

    A model for pairs gives nearly the same answer to all pairs of unrelated texts, so that these alone hold little of
    it. The second text begins as the first one and ends as another text, or the reverse, cut at a random share of their
    words: a third of the pairs are unrelated, and the others range from unrelated to identical.
    """
    for row, text in enumerate(texts):
        draw = generator(seed, "pairs", row)
        other = texts[(row + int(draw.integers(1, len(texts)))) % len(texts)] if len(texts) > 1 else text
        share = 0.0 if draw.random() < UNRELATED else float(draw.random())
        second = mixed(text, other, share) if draw.random() < 0.5 else mixed(other, text, 1 - share)
        yield (text, second) if draw.random() < 0.5 else (second, text)


def mixed(first: str, last: str, share: float) -> str:
    """Return the beginning of one text and the end of another: `share` of the words of the first, the rest of the
    last."""
    if share in (0.0, 1.0):
        return first if share else last
    begin, end = first.split(), last.split()
    words = begin[: round(share * len(begin))] + end[round(share * len(end)) :]
    return " ".join(words) or first


def texts_of_tasks(recipe: Recipe, tasks: Iterable[str], tokenizer: Tokenizer) -> Iterator[Texts]:
    """Yield the train texts of some tasks, and those without labels."""
    for name in tasks:
        files = task_files(recipe, name, tokenizer)
        for split in ("train", "unlabelled"):
            if files.has(split):
                yield from files.texts(split)


def texts_of_file(path: Path, tasks: Iterable[TaskConfig]) -> Iterator[Texts]:
    """Yield the texts of a file: pairs if it has the columns `text` and `text2` or those of a task on pairs; else
    single texts."""
    wanted = sorted([list(STANDARD), [STANDARD[0]], *map(_columns, tasks)], key=len, reverse=True)

    def chosen(found: list[str]) -> list[str]:
        for columns in wanted:
            if set(columns) <= set(found):
                return columns
        expected = " or ".join(dict.fromkeys(" and ".join(map(repr, columns)) for columns in wanted))
        raise UserError(f"{path}: has the columns {', '.join(map(repr, found))}, expected {expected}")

    problems = Problems(path)
    read: list[str] = []
    for row in read_rows(path, problems, chosen):
        read = read or chosen(list(row.values))
        yield tuple(row.values[column] for column in read)
    problems.stop()


def _drawn(rows: list[Row], most: int | None, seed: int, purpose: str) -> list[Row]:
    """Return at most so many of the rows, drawn at random, in their order."""
    if most is None or len(rows) <= most:
        return rows
    chosen = generator(seed, "held", purpose).choice(len(rows), most, replace=False)
    return [rows[i] for i in sorted(chosen.tolist())]


def _columns(task: TaskConfig) -> list[str]:
    return [task.data.text] if task.data.text2 is None else [task.data.text, task.data.text2]
