"""Looks into a user's files and proposes a recipe, every choice explained.

Guesses are made from whole columns, never from the first rows, and each one is written into the recipe as a comment,
so that a wrong one is easy to see and to change.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.data.files import read_rows
from weft.data.labels import as_float, canonical, divide
from weft.data.problems import Problems
from weft.errors import UserError

DISTINCT_KEPT = 200
"""a column with more different values than this is not a set of classes"""
LABEL_WORDS = (
    "label",
    "class",
    "category",
    "sentiment",
    "stars",
    "rating",
    "score",
    "target",
    "similarity",
    "duplicate",
)
PAIR_ENDINGS = [("1", "2"), ("a", "b"), ("A", "B"), ("_1", "_2"), ("premise", "hypothesis"), ("", "2")]
TRAIN_WORDS, DEV_WORDS, TEST_WORDS = ("train", "training"), ("dev", "valid", "validation", "val"), ("test",)

Ask = Callable[[str, str, Sequence[str]], str]
"""(question, proposed answer, possible answers) -> answer; outside a terminal it returns the proposal"""


@dataclass
class Column:
    """What a whole column looks like."""

    name: str
    filled: int = 0
    empty: int = 0
    words: int = 0
    numbers: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    overflown: bool = False
    """more different values than are worth keeping"""

    def add(self, value: str) -> None:
        if not value.strip():
            self.empty += 1
            return
        self.filled += 1
        self.words += len(value.split())
        self.numbers += as_float(value.strip()) is not None
        if not self.overflown:
            self.counts[canonical(value)] += 1
            self.overflown = len(self.counts) > DISTINCT_KEPT

    @property
    def mean_words(self) -> float:
        return self.words / max(self.filled, 1)

    @property
    def is_numeric(self) -> bool:
        return self.filled > 0 and self.numbers == self.filled

    @property
    def is_text(self) -> bool:
        """Several words a row, and rows that mostly differ."""
        repeats = not self.overflown and len(self.counts) <= max(2, self.filled // 5)
        return self.filled > 0 and not self.is_numeric and self.mean_words >= 2.5 and not repeats

    @property
    def is_several(self) -> bool:
        """Cells such as `plot;acting` whose parts come from one small set."""
        if self.is_numeric or self.overflown or not self.counts:
            return False
        parts = [divide(value) for value in self.counts]
        names = {name for row in parts for name in row}
        return any(len(row) > 1 for row in parts) and len(names) <= 30 and all(len(n.split()) <= 3 for n in names)

    @property
    def could_be_label(self) -> bool:
        if self.filled == 0 or self.is_text:
            return False
        if self.is_several or self.is_numeric:
            return not self.looks_like_id and len(self.counts) >= 2
        return not self.overflown and 2 <= len(self.counts) <= max(2, self.filled // 3)

    @property
    def looks_like_id(self) -> bool:
        if self.name.strip().lower() in ("", "id", "idx", "index", "uuid", "row", "guid", "unnamed: 0"):
            return True
        whole = not self.overflown and all((as_float(v) or 0.5).is_integer() for v in self.counts)
        return whole and len(self.counts) == self.filled > 10


@dataclass(frozen=True)
class Profile:
    path: Path
    rows: int
    bad_lines: int
    columns: dict[str, Column]


def profile(path: Path) -> Profile:
    """Every column of a file, counted over all of its rows."""
    problems = Problems(path)
    columns: dict[str, Column] = {}
    rows = 0
    for row in read_rows(path, problems):
        rows += 1
        for name, value in row.values.items():
            columns.setdefault(name, Column(name)).add(value)
    if not rows:
        raise UserError(f"{path}: has no rows to look at")
    return Profile(path, rows, problems.counts.total(), columns)


def propose(files: Sequence[Path], out: Path, ask: Ask) -> str:
    """The text of a recipe for these files."""
    groups = _group(files)
    blocks, rows = [], []
    for name, splits in groups.items():
        found = profile(splits["train"])
        rows.append(found.rows)
        blocks.append(_task(name, found, splits, out.parent, ask))
    epochs = 8 if min(rows) < 1000 else 4 if min(rows) < 10000 else 2
    head = [
        "# Proposed by `weft init`. Each choice says why it was made: change what is wrong,",
        f"# then look at everything with `weft check {out.name}` and train with `weft train {out.name} -o RUN`.",
        f"name = {json.dumps(out.stem)}",
        'body = "packaged:minilm-l6"   # small and quick; any BERT folder or hub id works',
        f"epochs = {epochs}   # the smallest train file has {min(rows):,} rows: fewer rows, more passes",
        "max_length = 128   # tokens; `weft check` says how many rows are longer",
        "dropout = 0.1",
        "",
        *blocks,
        "[optimizer]",
        "lr = 5e-5   # a good start for small bodies; 2e-5 for BERT base",
        "weight_decay = 0.01",
        "warmup = 10",
        "clip = 1.0",
    ]
    return "\n".join(head) + "\n"


def _group(files: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """Files that belong to one task: `mood-train.csv` and `mood-dev.csv` are task mood."""
    groups: dict[str, dict[str, Path]] = {}
    for path in files:
        stem = path.name.split(".")[0]
        split = "train"
        for role, words in (("train", TRAIN_WORDS), ("dev", DEV_WORDS), ("test", TEST_WORDS)):
            for word in words:
                shorter = re.sub(rf"(^|[-_. ]){word}([-_. ]|$)", r"\1", stem, flags=re.IGNORECASE)
                if shorter != stem:
                    split, stem = role, shorter
                    break
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_") or "task"
        name = name if name[0].isalpha() else f"task-{name}"
        if split in groups.setdefault(name, {}):
            raise UserError(
                f"{path} and {groups[name][split]}: both look like the {split} file of {name!r}; rename one"
            )
        groups[name][split] = path
    for name, splits in groups.items():
        if "train" not in splits:
            only = next(iter(splits.values()))
            if len(splits) > 1:
                raise UserError(f"{only}: there is no train file for {name!r} beside it")
            groups[name] = {"train": only}
    return groups


def _task(name: str, found: Profile, splits: dict[str, Path], base: Path, ask: Ask) -> str:
    columns = found.columns
    texts, why_texts = _choose_texts(found)
    texts = [ask(f"{found.path.name}: text column", texts[0], list(columns)), *texts[1:]]
    label, why_label = _choose_label(found, texts)
    label = ask(f"{found.path.name}: label column", label, [c for c in columns if c not in texts])
    kind, why_kind, extra = _choose_kind(columns[label])
    lines = [f"[tasks.{name}]", f'kind = "{kind}"   # {why_kind}']
    if len(texts) == 2:
        lines.append('reading = "cross"   # both texts in one sequence: the most accurate; "bi" encodes each once')
    lines += ['pooling = "mean"', "batch_size = 16", *extra, "", f"[tasks.{name}.data]"]
    lines += [f"{split} = {json.dumps(_relative(path, base))}" for split, path in splits.items()]
    if "dev" not in splits:
        fraction = 0.2 if found.rows < 2000 else 0.1
        lines.append(f"dev_fraction = {fraction}   # no dev file was given; rows with equal texts stay on one side")
    lines.append(f"text = {json.dumps(texts[0])}   # {why_texts}")
    if len(texts) == 2:
        lines.append(f"text2 = {json.dumps(texts[1])}")
    lines.append(f"label = {json.dumps(label)}   # {why_label}")
    bad = found.bad_lines + sum(columns[column].empty for column in (*texts, label))
    if bad:
        lines.append(
            f'on_bad_rows = "skip"   # {bad:,} of {found.rows:,} rows lack a text or a label, or cannot be read'
        )
    unused = [column for column in columns if column not in (*texts, label)]
    if unused:
        lines.append(f"# not used: {', '.join(column or '(unnamed)' for column in unused)}")
    return "\n".join([*lines, ""])


def _choose_texts(found: Profile) -> tuple[list[str], str]:
    candidates = [c for c in found.columns.values() if c.is_text and not c.looks_like_id]
    if not candidates:
        shown = ", ".join(repr(name) for name in found.columns)
        raise UserError(
            f"{found.path}: no column looks like text (several words, rows that differ); the columns are {shown}. "
            "Write a recipe by hand: `weft recipes starter` prints one to copy"
        )
    names = {c.name for c in candidates}
    for first, second in PAIR_ENDINGS:
        for name in sorted(names):
            stem = name.removesuffix(first) if name.endswith(first) else None
            if stem is not None and name != stem + second and stem + second in names:
                return [name, stem + second], f"{name} and {stem + second} look like the two texts of a pair"
    longest = max(candidates, key=lambda c: c.mean_words)
    others = f"; longer than {', '.join(sorted(names - {longest.name}))}" if len(candidates) > 1 else ""
    return [longest.name], f"{longest.mean_words:.0f} words a row{others}"


def _choose_label(found: Profile, texts: list[str]) -> tuple[str, str]:
    candidates = [c for c in found.columns.values() if c.name not in texts and c.could_be_label]
    if not candidates:
        shown = ", ".join(repr(name) for name in found.columns)
        raise UserError(f"{found.path}: no column looks like a label; the columns are {shown}")

    def rank(column: Column) -> tuple[bool, bool, int]:
        named = any(word in column.name.lower() for word in LABEL_WORDS)
        return (named, not column.looks_like_id, -len(column.counts))

    best = max(candidates, key=rank)
    if rank(best)[0]:
        return best.name, "its name says so"
    return best.name, f"{len(best.counts)} different values, the fewest"


def _choose_kind(column: Column) -> tuple[str, str, list[str]]:
    """kind, the reason, and further keys of the task"""
    values = list(column.counts)
    shown = ", ".join(sorted(values, key=lambda v: (as_float(v) or 0.0, v))[:6]) + (", ..." if len(values) > 6 else "")
    if column.is_several:
        names = sorted({name for value in values for name in divide(value)})
        return "multilabel", f"several labels in one cell, out of {', '.join(names[:6])}", []
    if not column.is_numeric:
        return "classification", f"{len(values)} names: {shown}", []
    numbers = sorted(float(value) for value in values)
    if len(values) == 2:
        return "classification", f"two values: {shown}", []
    whole = not column.overflown and all(number.is_integer() for number in numbers)
    if whole and len(values) <= 10 and numbers[-1] - numbers[0] < 12:
        return "ordinal", f'whole numbers in order: {shown}; "classification" if the order means nothing', []
    low, high = numbers[0], numbers[-1]
    reason = f"numbers from {low:g} to {high:g}"
    return "regression", reason if not column.overflown else "numbers, many of them different", []


def _relative(path: Path, base: Path) -> str:
    """A path as the recipe should name it: relative to the recipe where it lies below it."""
    absolute, start = path.resolve(), base.resolve()
    return str(absolute.relative_to(start)) if absolute.is_relative_to(start) else str(absolute)
