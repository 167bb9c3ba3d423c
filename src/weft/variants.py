"""What the config classes of all exchangeable parts have in common."""

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Config(BaseModel):
    """A piece of a recipe: typed, frozen, and it knows its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def _name_alone(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


NAME_ALONE = BeforeValidator(_name_alone)
"""Lets a variant without options be written as its name: ``loss = "mse"`` for ``loss = { name = "mse" }``."""
