"""The contract of config classes, and assertions for all checks."""

from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from weft.foundation.config import Config


def require(condition: bool | Tensor, message: str) -> None:
    """Raise AssertionError if the condition is false. Unlike `assert`, it is not removed by `python -O`."""
    if not bool(condition):
        raise AssertionError(message)


def require_close(found: Tensor, expected: Tensor, message: str, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Raise AssertionError if the tensors differ in shape, or in values beyond rounding."""
    close = found.shape == expected.shape and torch.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    require(close, f"{message}: found {found.tolist()}, expected {expected.tolist()}")


def check_config(config: Config) -> None:
    """Check that a config has a name, rejects unknown keys, is frozen, and survives serialization unchanged."""
    kind, shown = type(config), type(config).__name__
    written = config.model_dump(mode="json", exclude_none=True)
    require(isinstance(written.get("name"), str), f'{shown}: has no field such as name: Literal["mine"] = "mine"')
    require(kind.model_validate(written) == config, f"{shown}: differs after serialization and parsing")
    require(_rejects(lambda: kind.model_validate(written | {"no_such_option": 1})), f"{shown}: accepts unknown keys")
    require(_rejects(lambda: setattr(config, "name", written["name"])), f"{shown}: is not frozen")


def _rejects(action: Any) -> bool:
    try:
        action()
    except ValidationError:
        return True
    return False
