"""Executors, which run the jobs of a study: one class per backend."""

from weft.study.executors.base import StudyExecutor
from weft.study.executors.local import LocalStudyExecutor
from weft.study.executors.ray import Ray

__all__ = ["EXECUTORS", "StudyExecutor"]

EXECUTORS: dict[str, type[StudyExecutor]] = {"local": LocalStudyExecutor, "ray": Ray}
"""The registry: `--executor` is one of these."""
