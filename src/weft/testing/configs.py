"""What holds for every config class."""

from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from weft.foundation.config import Config


def require(condition: bool | Tensor, message: str) -> None:
    """AssertionError unless it holds; unlike `assert`, Python's -O does not remove it."""
    if not bool(condition):
        raise AssertionError(message)


def require_close(found: Tensor, expected: Tensor, message: str, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Equal up to rounding, in shape too."""
    close = found.shape == expected.shape and torch.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    require(close, f"{message}: found {found.tolist()}, expected {expected.tolist()}")


def check_config(config: Config) -> None:
    """A config rejects unknown keys and changes, has a name, and is the same after it was written and read."""
    kind, shown = type(config), type(config).__name__
    written = config.model_dump(mode="json", exclude_none=True)
    require(isinstance(written.get("name"), str), f'{shown}: has no field such as name: Literal["mine"] = "mine"')
    require(kind.model_validate(written) == config, f"{shown}: is another config after it was written and read")
    require(_rejects(lambda: kind.model_validate(written | {"no_such_option": 1})), f"{shown}: accepts unknown keys")
    require(_rejects(lambda: setattr(config, "name", written["name"])), f"{shown}: is not frozen")


def _rejects(action: Any) -> bool:
    try:
        action()
    except ValidationError:
        return True
    return False
