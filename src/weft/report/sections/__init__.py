"""What a report says of a task: one file for each kind of label, found by the kind's name."""

from importlib import import_module

from weft.kinds.base import Kind
from weft.report.sections.base import Section


def section_of(kind: Kind) -> Section:
    section: Section = import_module(f"weft.report.sections.{kind.name}").SECTION
    return section
