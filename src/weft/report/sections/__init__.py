"""The part of a report that depends on the kind of a task: one module per kind, found by its name."""

from importlib import import_module

from weft.kinds.base import Kind
from weft.report.sections.base import Section


def section_of(kind: Kind) -> Section:
    """Return the section of a kind of label."""
    section: Section = import_module(f"weft.report.sections.{kind.name}").SECTION
    return section
