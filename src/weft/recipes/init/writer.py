"""Writes the recipe that `weft init` proposes."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.recipes.init.choices import Label, TextColumns, choose_kind, choose_labels, choose_texts
from weft.recipes.init.defaults import dev_fraction, run_settings, task_settings, training_settings
from weft.recipes.init.profile import Profile, guess_encoding, profile

TRAIN_WORDS, DEV_WORDS, TEST_WORDS = ("train", "training"), ("dev", "valid", "validation", "val"), ("test",)

Ask = Callable[[str, str, Sequence[str]], str]
"""(question, proposed answer, possible answers) -> answer; outside a terminal it returns the proposal"""


def propose(files: Sequence[Path], out: Path, ask: Ask) -> str:
    """Return the text of a recipe for these files."""
    blocks: list[str] = []
    rows = []
    taken: set[str] = set()
    for name, splits in _group(files).items():
        encoding, not_utf8 = guess_encoding(splits.values())
        found = profile(splits["train"], encoding)
        rows.append(found.rows)
        doubts = [] if not_utf8 is None else [_encoding_doubt(not_utf8, encoding)]
        blocks += _tasks(name, found, splits, out.parent, ask, doubts, taken)
    head = [
        "# Proposed by `weft init`. A comment explains each choice: correct what is wrong,",
        f"# then check the recipe with `weft check {out.name}` and train with `weft train {out.name} -o RUN`.",
        f"name = {_toml(out.stem)}",
        *run_settings(min(rows)),
        "",
    ]
    return "\n".join([*head, *blocks, *training_settings(len(rows))]) + "\n"


def _encoding_doubt(path: Path, encoding: str) -> str:
    return f"{path.name} is not UTF-8 and is read as {encoding}; check its accents and correct `encoding` if needed"


def _group(files: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """Group files by task: `mood-train.csv` and `mood-dev.csv` belong to task mood."""
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
        name = _task_name(stem)
        if split in groups.setdefault(name, {}):
            raise UserError(
                f"{path} and {groups[name][split]}: both look like the {split} file of {name!r}; rename one"
            )
        groups[name][split] = path
    for name, splits in groups.items():
        if "train" not in splits:
            only = next(iter(splits.values()))
            if len(splits) > 1:
                raise UserError(f"{only}: found no train file for {name!r} among the files; add it")
            groups[name] = {"train": only}
    return groups


def _tasks(
    name: str, found: Profile, splits: dict[str, Path], base: Path, ask: Ask, doubts: list[str], taken: set[str]
) -> list[str]:
    """Format the tables of all tasks of one file; doubts about the whole file go to the first of them.

    `taken` are the names of all tasks so far.
    """
    texts = choose_texts(found)
    asked = ask(f"{found.path.name}: text column", texts.columns[0], list(found.columns))
    if asked != texts.columns[0]:
        texts = TextColumns((asked,), "your choice")
    labels = choose_labels(found, texts.columns)
    if len(labels) == 1 and len(labels[0].columns) == 1:
        labels = [_asked(labels[0], found, texts, ask)]
    doubts = [*doubts, *([texts.doubt] if texts.doubt else [])]
    used = {*texts.columns, *(column for label in labels for column in label.columns)}
    unused = [column for column in found.columns if column not in used]
    names = _column_names(found, texts, labels)
    blocks: list[str] = []
    bad = _bad_rows(found, texts, labels)
    for label in labels:
        wanted = name if len(labels) == 1 else _task_name(f"{name}-{_label_name(label, names)}")
        task = next(one for one in chain([wanted], (f"{wanted}-{n}" for n in count(2))) if one not in taken)
        taken.add(task)
        own = [*(doubts if not blocks else []), *([label.doubt] if label.doubt else [])]
        blocks.append(_task(task, found, splits, base, texts, label, names, own, unused, bad))
    return [*([_source_comment(found)] if len(blocks) > 1 else []), *blocks]


def _source_comment(found: Profile) -> str:
    return "\n".join(
        [
            _comment(
                f"The tasks of {found.path.name} read the same texts and are one source: each row goes through the"
            ),
            "# body once and trains every task whose label it has. They need the same batch_size.",
            "",
        ]
    )


def _asked(label: Label, found: Profile, texts: TextColumns, ask: Ask) -> Label:
    possible = [column for column in found.columns if column not in texts.columns]
    column = ask(f"{found.path.name}: label column", label.columns[0], possible)
    if column == label.columns[0]:
        return label
    kind, why_kind = choose_kind(found.columns[column])
    return Label((column,), kind, "your choice", why_kind)


def _column_names(found: Profile, texts: TextColumns, labels: Sequence[Label]) -> dict[str, str]:
    """Name of each column in the recipe; columns of a file without a header are named by their role."""
    if found.layout.header:
        return {column: column for column in found.columns}
    names = {column: f"column{column}" for column in found.columns}
    names |= dict(zip(texts.columns, ("text", "text2"), strict=False))
    columns = [column for label in labels for column in label.columns]
    return names | {column: "label" if len(columns) == 1 else f"label{column}" for column in columns}


def _label_name(label: Label, names: dict[str, str]) -> str:
    return names[label.columns[0]] if len(label.columns) == 1 else "labels"


def _task(
    task: str,
    found: Profile,
    splits: dict[str, Path],
    base: Path,
    texts: TextColumns,
    label: Label,
    names: dict[str, str],
    doubts: list[str],
    unused: list[str],
    bad: list[str],
) -> str:
    lines = [f"[tasks.{task}]", f'kind = "{label.kind}"   {_comment(label.why_kind)}']
    defaults = KINDS[label.kind].defaults
    settings = task_settings(
        pair=len(texts.columns) == 2, fixed=defaults.get("reading"), pooled="pooling" not in defaults
    )
    lines += [*settings, "", f"[tasks.{task}.data]"]
    lines += [f"{split} = {_toml(_relative(path, base))}" for split, path in splits.items()]
    if "dev" not in splits:
        lines.append(dev_fraction(found.rows))
    if not found.layout.header:
        lines.append("header = false   # the first line looks like a row, not like column names")
        lines.append(f"columns = {_toml(list(names.values()))}")
    if found.layout.encoding != "utf-8":
        lines.append(f"encoding = {_toml(found.layout.encoding)}   # the files are not UTF-8")
    for key, column in zip(("text", "text2"), texts.columns, strict=False):
        lines.append(f"{key} = {_toml(names[column])}" + (f"   {_comment(texts.why)}" if key == "text" else ""))
    columns = [names[column] for column in label.columns]
    if columns:
        lines.append(f"label = {_toml(columns if len(columns) > 1 else columns[0])}   {_comment(label.why)}")
    lines += [*bad, *(_blank_labels(found, label) if columns else [])]
    if doubts:
        lines += ["doubts = [   # `weft check` repeats these; delete each one when it is resolved"]
        lines += [*(f"    {_toml(doubt)}," for doubt in doubts), "]"]
    if unused:
        lines.append(_comment(f"not used: {', '.join(names[column] or '(unnamed)' for column in unused)}"))
    return "\n".join([*lines, ""])


def _bad_rows(found: Profile, texts: TextColumns, labels: Sequence[Label]) -> list[str]:
    """Lines about rows that cannot be used, if any: the same for all tasks of a file, which read the same rows."""
    partly = [column for label in labels if len(label.columns) > 1 for column in label.columns]
    bad = found.bad_lines + sum(found.columns[column].empty for column in (*texts.columns, *partly))
    if not bad:
        return []
    what = "no text, or only some of the columns of 0 and 1," if partly else "no text"
    return [f'on_bad_rows = "skip"   # up to {bad:,} of {found.rows:,} rows have {what} or cannot be read']


def _blank_labels(found: Profile, label: Label) -> list[str]:
    """Lines about rows without a label, if any. With one multilabel column, a blank cell is a valid label."""
    blank = min(found.columns[column].empty for column in label.columns)
    if not blank:
        return []
    rows = f"{blank:,} of {found.rows:,} rows have no label"
    marks_none = "[]" in found.columns[label.columns[0]].counts
    if len(label.columns) == 1 and not KINDS[label.kind].parts("") and not marks_none:
        return [f'# {rows}: no label applies to them; with on_blank = "skip" they are not asked']
    return [f'on_blank = "skip"   # {rows}: this task does not ask about them']


def _task_name(text: str) -> str:
    """Make a valid task name: letters, digits, - and _, starting with a letter."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_") or "task"
    return name if name[0].isalpha() else f"task-{name}"


def _toml(value: Any) -> str:
    """Format a string or a list of strings as TOML, which is also JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """Format a one-line comment; column names and cells of a file may contain line breaks."""
    return "# " + "".join(character if character.isprintable() else " " for character in text)


def _relative(path: Path, base: Path) -> str:
    """Format a path for the recipe: relative if the file is below the recipe's folder, else absolute."""
    absolute, start = path.resolve(), base.resolve()
    return str(absolute.relative_to(start)) if absolute.is_relative_to(start) else str(absolute)
