"""Shipped recipes: weft's own, and one for every row of five published reports.

Each of weft's own recipes is a file in `shipped/recipes/`. A report is a file in `shipped/recipes/reports/`: a base
that all rows share, then the rows as changes to it. A row may have several cases, one id each, and may start from
another row instead of the base, as in the report's experiments.
"""

import copy
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import Field

from weft.foundation.config import Config
from weft.foundation.content import Content, put, toml_text
from weft.foundation.shipped import pick, shipped_texts


class Open(Config):
    """A question that a report leaves open."""

    question: str
    reading: str
    """the recipe's interpretation"""
    why: str
    """why the question cannot be resolved"""

    def sentence(self) -> str:
        return f"open: {self.question}. Read as: {self.reading}; {self.why}."


class Published(Config):
    """Published figures of a row, for comparison. They are not results of weft."""

    dev: dict[str, float] = Field(default_factory=dict)
    test: dict[str, float] = Field(default_factory=dict)
    overall: float | None = None
    """overall dev score, as the report defines it"""
    minutes: float | None = None
    best_epoch: int | None = None
    note: str | None = None
    """where the report contradicts itself or needs an explanation, and how it is interpreted"""
    open: tuple[Open, ...] = ()
    """questions that the report leaves open for this row"""
    changed: str | None = None
    """changes since version 0.1, in addition to the report's `changed`"""
    alias: str | None = None
    """id of the row with the same recipe"""

    def figures(self) -> dict[str, Any]:
        """Published figures, without missing ones."""
        printed = self.model_dump(include={"dev", "test", "overall", "minutes", "best_epoch"}, exclude_none=True)
        return {key: value for key, value in printed.items() if value != {}}


class Case(Published):
    """One case of a row: the values of the row's `keys`."""

    values: tuple[Any, ...] = ()
    """one value for each of the row's `keys`"""


class PublishedRow(Published):
    """One row of a report, as changes to the report's base or to another row."""

    id: str
    """id of the recipe; in a row with cases, `*` here and in `about` is replaced by the case's name"""
    about: str
    start: str | None = Field(default=None, alias="from")
    """id of the row it starts from; defaults to the report's base"""
    only: tuple[str, ...] | None = None
    """tasks to keep; defaults to all tasks"""
    set: dict[str, Any] = Field(default_factory=dict)
    """dotted keys and their values; `tasks.*.head` sets the key of every task"""
    keys: tuple[str, ...] = ()
    """dotted keys that differ between the cases"""
    cases: dict[str, Case] = Field(default_factory=dict)


class Report(Config):
    """A published report: its base recipe and its rows."""

    report: int
    title: str
    authors: str
    idea: str
    settled: tuple[str, ...] = ()
    """facts about all rows that are not in the report's text, with their sources"""
    open: tuple[Open, ...] = ()
    """questions that the report leaves open for all rows"""
    changed: str
    """changes to all rows since version 0.1, with the source"""
    base: Content
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class Shipped:
    """One shipped recipe."""

    id: str
    about: str
    content: Content
    text: str
    """as `weft recipes ID` prints it"""
    report: int | None = None
    alias: str | None = None
    published: Published | None = None
    open: tuple[Open, ...] = ()
    """questions that the report leaves open for this row only"""
    changed: str | None = None
    """changes since version 0.1 of this row only"""


@cache
def reports() -> tuple[Report, ...]:
    """All shipped reports."""
    return tuple(Report.model_validate(tomllib.loads(text)) for text in shipped_texts("recipes/reports").values())


@cache
def own_recipes() -> dict[str, Shipped]:
    """weft's own recipes by id."""
    return {
        # the comment at the top of a recipe says what it is for
        name: Shipped(name, text.splitlines()[0].removeprefix("# "), tomllib.loads(text), text)
        for name, text in shipped_texts("recipes").items()
    }


@cache
def library() -> dict[str, Shipped]:
    """Shipped recipes by id: weft's own first, then report by report."""
    found = dict(own_recipes())
    for report in reports():
        contents: dict[str, Content] = {}
        for shipped in _rows_of(report, contents):
            assert shipped.id not in found, f"duplicate id {shipped.id}"
            contents[shipped.id] = shipped.content
            found[shipped.id] = shipped
    return found


def find_shipped(name: str) -> Shipped:
    """Return a shipped recipe by id; an unknown id raises UserError."""
    return own_recipes().get(name) or pick(name, library(), "recipe")  # the reports have 150 rows to make


def _rows_of(report: Report, contents: dict[str, Content]) -> Iterator[Shipped]:
    """Yield all recipes of a report; `contents` has those yielded before."""
    for row in report.rows:
        for name, case in row.cases.items() or [("", row)]:
            one = row.id.replace("*", name)
            about = row.about.replace("*", name)
            values = case.values if isinstance(case, Case) else ()
            content = contents[case.alias] if case.alias else _changed(report, row, values, contents) | {"name": one}
            opens = tuple(dict.fromkeys((*row.open, *case.open)))
            changed = case.changed or row.changed
            text = _text(report, row, case, f"{one}: {about}.", content)
            yield Shipped(one, about, content, text, report.report, case.alias, case, opens, changed)


def _changed(report: Report, row: PublishedRow, values: tuple[Any, ...], contents: dict[str, Content]) -> Content:
    content: Content = {"name": row.id} | copy.deepcopy(contents[row.start] if row.start else report.base)
    if row.only is not None:
        content["tasks"] = {task: content["tasks"][task] for task in row.only}
    for key, value in {**row.set, **dict(zip(row.keys, values, strict=True))}.items():
        put(content, key, value)
    return content


def _text(report: Report, row: PublishedRow, case: Published, title: str, content: Content) -> str:
    """Format the recipe as a file to copy, with the notes about it as comments at the top."""
    said = [title, f'Report {report.report}: {report.authors}, "{report.title}".']
    if case.alias:
        said.append(f"The same recipe as {case.alias}.")
    for split, scores in (("dev", case.dev), ("test", case.test)):
        if scores:
            figures = ", ".join(f"{task} {value:.3f}" for task, value in scores.items())
            said.append(f"Published on {split}: {figures}.")
    notes = [note for note in dict.fromkeys((row.note, case.note)) if note]
    opens = [one.sentence() for one in dict.fromkeys((*row.open, *case.open, *report.open))]
    said += [f"Note: {note}" for note in [*notes, *report.settled, *opens]]
    said += [f"Changed since 0.1: {change}" for change in (report.changed, case.changed or row.changed) if change]
    lines = [line for part in said for line in textwrap.wrap(part, 108, subsequent_indent="  ")]
    return "".join(f"# {line}\n" for line in lines) + "\n" + toml_text(content)
