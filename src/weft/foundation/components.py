"""Components of a recipe: shipped ones are named by `name`, custom ones by `use`."""

import inspect
import re
from typing import Any, Self, get_args

from pydantic import ConfigDict, GetCoreSchemaHandler, PrivateAttr, SerializationInfo, ValidationInfo, field_validator
from pydantic_core import core_schema

from weft.foundation.config import Config, name_alone
from weft.foundation.errors import UserError
from weft.foundation.own_code import ADDRESS, Importer


class Component(Config):
    """Base of each room's config classes. A shipped component has a `name`, a custom one also an address."""

    _use: str | None = PrivateAttr(default=None)

    @property
    def use(self) -> str | None:
        """Address `module:Class` of a custom component; None for a shipped one."""
        return self._use

    def used_as(self, address: str) -> Self:
        """Store the address that the component was imported by; returns the component."""
        self._use = address
        return self


class Unimported(Config):
    """A custom component as plain data, with nothing imported."""

    model_config = ConfigDict(extra="allow")
    use: str
    """Address of the config class, `module:Class`."""

    @field_validator("use")
    @classmethod
    def _an_address(cls, use: str) -> str:
        if not re.fullmatch(ADDRESS, use):
            raise ValueError(f"found {use!r}, expected an address module:Class, such as mypackage.losses:FocalConfig")
        return use


class Exchangeable:
    """Extends a union of shipped components to custom ones: `{ use = "module:Class", ... }`.

    Parsing turns such a table into an `Unimported`. Parsing with an `Importer` as context imports the class, which must
    be a subclass of the room's `base`, and validates the table with it. Both serialize to the table that was read.
    """

    def __init__(self, base: type[Component]) -> None:
        self.base = base
        self.names: set[str] = set()
        """Names of the shipped components."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        self.names = {member.model_fields["name"].default for member in get_args(source) or (source,)}
        shipped = handler(source)
        writer = core_schema.wrap_serializer_function_ser_schema(self._write, info_arg=True, schema=shipped)
        return core_schema.with_info_wrap_validator_function(self._read, shipped, serialization=writer)

    def _read(self, value: Any, shipped: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if isinstance(value, Unimported) or (isinstance(value, self.base) and value.use is not None):
            return value
        if not (isinstance(value, dict) and "use" in value):
            return shipped(name_alone(value))
        named = Unimported.model_validate(value)
        if info.context is None:
            return named
        importer: Importer = info.context
        found = importer.find(named.use)
        self._require_fits(found, named.use)
        return found.model_validate(named.model_extra, context=importer).used_as(named.use)

    def _write(self, part: Any, shipped: core_schema.SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        own = part.use if isinstance(part, Component | Unimported) else None
        if own is None:
            return shipped(part)
        return {"use": own} | part.model_dump(mode=info.mode, exclude_none=info.exclude_none)

    def _require_fits(self, found: Any, address: str) -> None:
        base = f"{self.base.__module__}.{self.base.__qualname__}"
        if not (isinstance(found, type) and issubclass(found, self.base)):
            kind = "a class of another kind" if isinstance(found, type) else f"a {type(found).__name__}"
            raise ValueError(f"{address!r} is {kind}; expected a config class, a subclass of {base}")
        if inspect.isabstract(found):
            missing = ", ".join(sorted(found.__abstractmethods__))
            raise ValueError(f"{address!r} does not define {missing}; see {base}")
        name = found.model_fields.get("name")
        if name is None or not isinstance(name.default, str):
            raise ValueError(f'{address!r} has no name; expected a field such as name: Literal["mine"] = "mine"')
        if name.default in self.names:
            raise ValueError(f"{address!r} has the name {name.default!r} of a shipped component; choose another name")


def require_made(part: Component, made: object, kind: type, key: str) -> None:
    """Check that a custom component builds an instance of its room's base class."""
    if part.use is not None and not isinstance(made, kind):
        raise UserError(
            f"{key}: {part.use!r} built a {type(made).__name__}; expected a subclass of "
            f"{kind.__module__}.{kind.__qualname__}"
        )
