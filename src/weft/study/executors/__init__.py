"""Who runs the jobs of a study: one class for each way."""

from weft.study.executors.base import Executor
from weft.study.executors.local import Local
from weft.study.executors.ray import Ray

__all__ = ["EXECUTORS", "Executor"]

EXECUTORS: dict[str, type[Executor]] = {"local": Local, "ray": Ray}
"""The registry: `--executor` is one of these."""
