"""Libraries that are imported when one of their functions is first called: loading a model does not wait for them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


class LazyFunctions:
    """The functions of a module, by name; `LazyFunctions("sklearn.metrics").f1_score` imports nothing until called."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return getattr(import_module(self._module), name)(*arguments, **options)

        return call
