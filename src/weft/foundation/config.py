"""Base of all config classes, and parsing with readable errors."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from weft.foundation.errors import UserError
from weft.foundation.own_code import Importer


class Config(BaseModel):
    """Base of all parts of a recipe: typed, frozen, unknown keys forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def name_alone(value: Any) -> Any:
    """Expand a variant's short form, its name, to a table."""
    return {"name": value} if isinstance(value, str) else value


NAME_ALONE = BeforeValidator(name_alone)
"""Lets a variant without options be written as its name: ``loss = "mse"`` for ``loss = { name = "mse" }``."""

_NAME = r"[A-Za-z][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*"


def file_name(name: str) -> str:
    """Name of a task or an arm without spaces, for files, folders and HTML ids."""
    return name.replace(" ", "_")


def check_names(names: Iterable[str], what: str) -> None:
    """Raise ValueError unless all names are valid in keys such as `tasks.NAME.head` and have distinct file names."""
    taken: dict[str, str] = {}
    for name in names:
        if not re.fullmatch(_NAME, name):
            raise ValueError(
                f"the {what} {name!r} must start with a letter and contain only letters, digits, - and _, "
                "with single spaces between words"
            )
        other = taken.setdefault(file_name(name), name)
        if other != name:
            raise ValueError(f"the {what}s {other!r} and {name!r} would share the file name {file_name(name)!r}")


Parsed = TypeVar("Parsed", bound=Config)


def parse(model: type[Parsed], content: Mapping[str, Any], where: str, importer: Importer | None = None) -> Parsed:
    """Validate the content of a file; one `UserError` lists every invalid key.

    With an `importer`, the components that the content names by `use` are imported; without one they stay plain data.
    """
    try:
        return model.model_validate(content, context=importer)
    except ValidationError as error:
        own = importer.classes if importer else {}
        found = [_explain(item, model, content, own) for item in error.errors()]
        raise UserError("\n".join(f"{where}: {line}" for line in found)) from None


def _explain(item: Any, root: type[Config], content: Any, own: Mapping[str, Any]) -> str:
    """Format one of pydantic's errors: key, what was found, what was expected."""
    keys = [str(part) for part in item["loc"]]
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(keys[-1], _known_keys(item["loc"][:-1], root, content, own), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{'.'.join(keys)}: there is no such key{hint}"
    if item["type"] == "missing":
        return f"{'.'.join(keys)}: is missing"
    if item["type"] == "union_tag_invalid":
        context = item["ctx"]
        near = difflib.get_close_matches(context["tag"], re.findall(r"'([^']+)'", context["expected_tags"]), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{'.'.join(keys)}: found {context['tag']!r}, expected one of {context['expected_tags']}{hint}"
    message = item["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    found = item["input"]
    shown = "" if isinstance(found, dict) or item["type"] == "value_error" else f"found {found!r}, "
    return ": ".join([*([".".join(keys)] if keys else []), f"{shown}{message}"])


def _known_keys(loc: Iterable[str | int], root: type[Config], content: Any, own: Mapping[str, Any]) -> list[str]:
    """List the valid keys of the table at `loc` by walking the types from `root`.

    `own` are the classes of the components that the content names by `use`.
    """
    models: list[Any] = [root]
    for part in loc:
        key = str(part)
        fields = [model.model_fields[key].annotation for model in models if key in model.model_fields]
        if fields:
            models = [model for field in fields for model in _models_in(field)]
        else:  # a task's name, or a variant's name, which pydantic adds to the location
            named = [model for model in models if key in str(model.model_fields.get("name", ""))]
            models = named or models
        content = _inside(content, part)
        address = content.get("use") if isinstance(content, dict) else None
        if isinstance(address, str) and address in own:
            models = [own[address]]
    return [name for model in models for name in model.model_fields]


def _inside(content: Any, key: str | int) -> Any:
    """Value at a key. A variant's name, which pydantic adds to the location, is no key and is skipped."""
    if isinstance(content, dict):
        return content.get(key, content)
    return content[key] if isinstance(content, list | tuple) and isinstance(key, int) else content


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models_in(inner)]
