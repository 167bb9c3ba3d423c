"""The recipes that come with weft: its own, and one for every row of five published reports.

A recipe of weft's own is a file in `shipped/recipes/`. A report is a file in `shipped/recipes/reports/`: what all of
its rows share, then its rows, each by what it changes. A row may hold cases, one id each, and may start from another
row instead of from the base, as the report's own experiments do.
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
    """Something that a report leaves open."""

    question: str
    reading: str
    """how the recipe answers it"""
    why: str
    """why it cannot be settled"""

    def sentence(self) -> str:
        return f"open: {self.question}. Read as: {self.reading}; {self.why}."


class Published(Config):
    """What a report printed for a row. Facts to compare with, never results of ours."""

    dev: dict[str, float] = Field(default_factory=dict)
    test: dict[str, float] = Field(default_factory=dict)
    overall: float | None = None
    """the report's own overall dev score"""
    minutes: float | None = None
    best_epoch: int | None = None
    note: str | None = None
    """where the report contradicts itself or needs a word, and how it was read"""
    open: tuple[Open, ...] = ()
    """what the report leaves open for this row"""
    changed: str | None = None
    """what is different since version 0.1, beyond what the whole report's `changed` says"""
    alias: str | None = None
    """the id of the row that is the same recipe"""

    def figures(self) -> dict[str, Any]:
        """What was printed, without what was not."""
        printed = self.model_dump(include={"dev", "test", "overall", "minutes", "best_epoch"}, exclude_none=True)
        return {key: value for key, value in printed.items() if value != {}}


class Case(Published):
    values: tuple[Any, ...] = ()
    """one for each of the row's `keys`"""


class PublishedRow(Published):
    id: str
    """with cases, `*` stands for a case's name; so in `about`"""
    about: str
    start: str | None = Field(default=None, alias="from")
    """the row it starts from; the report's base unless said"""
    only: tuple[str, ...] | None = None
    """the tasks that it keeps"""
    set: dict[str, Any] = Field(default_factory=dict)
    """dotted keys and their values; `tasks.*.head` is every task's"""
    keys: tuple[str, ...] = ()
    cases: dict[str, Case] = Field(default_factory=dict)


class Report(Config):
    report: int
    title: str
    authors: str
    idea: str
    settled: tuple[str, ...] = ()
    """what is known of all rows beyond the report's text, and from where"""
    open: tuple[Open, ...] = ()
    """what the report leaves open for all rows"""
    changed: str
    """what is different in all rows since version 0.1, and by which source"""
    base: Content
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class Shipped:
    """One recipe that can be named on the command line."""

    id: str
    about: str
    content: Content
    text: str
    """as `weft recipes ID` prints it"""
    report: int | None = None
    alias: str | None = None
    published: Published | None = None
    open: tuple[Open, ...] = ()
    """what the report leaves open for this row alone"""
    changed: str | None = None
    """what is different since version 0.1, for this row alone"""


@cache
def reports() -> tuple[Report, ...]:
    return tuple(Report.model_validate(tomllib.loads(text)) for text in shipped_texts("recipes/reports").values())


@cache
def library() -> dict[str, Shipped]:
    """Every shipped recipe by its id, weft's own first, then report by report."""
    found = {}
    for name, text in shipped_texts("recipes").items():
        # the comment at the top of a recipe says what it is for
        found[name] = Shipped(name, text.splitlines()[0].removeprefix("# "), tomllib.loads(text), text)
    for report in reports():
        contents: dict[str, Content] = {}
        for shipped in _rows_of(report, contents):
            assert shipped.id not in found, f"{shipped.id} is there twice"
            contents[shipped.id] = shipped.content
            found[shipped.id] = shipped
    return found


def find_shipped(name: str) -> Shipped:
    return pick(name, library(), "recipe")


def _rows_of(report: Report, contents: dict[str, Content]) -> Iterator[Shipped]:
    """All ids of a report; `contents` holds those that came before."""
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
    """The recipe as a file to copy, with what a reader should know above it."""
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
