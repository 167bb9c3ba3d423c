"""Modules without a random start, for weights that are read from a file or never filled at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

RANDOM = frozenset(
    "normal_ trunc_normal_ uniform_ kaiming_normal_ kaiming_uniform_ xavier_normal_ xavier_uniform_ orthogonal_".split()
)
"""the functions of `torch.nn.init` that draw"""


class NoRandomStart(TorchFunctionMode):
    """Parameters start at zero instead of at random: drawing them takes longer than reading them from a file."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init" and func.__name__ in RANDOM:
            tensor = options["tensor"] if "tensor" in options else args[0]
            return tensor if tensor.is_meta else tensor.detach().zero_()
        return func(*args, **options)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Modules that are made here have shapes and no memory. torch's own draws would import its compiler there."""
    with torch.device("meta"), NoRandomStart():
        yield
