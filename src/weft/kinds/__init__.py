"""All kinds of labels. The table below is the registry: a recipe's `kind` is one of these."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from weft.kinds.base import Kind
from weft.kinds.classification import Classification
from weft.kinds.multilabel import Multilabel
from weft.kinds.ordinal import Ordinal
from weft.kinds.regression import Regression

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Classification(),
        Ordinal(),
        Multilabel(),
        Regression(),
    )
}


def _by_name(value: Any, check_name: ValidatorFunctionWrapHandler) -> Kind:
    return value if isinstance(value, Kind) else KINDS[check_name(value)]


if TYPE_CHECKING:
    KindName = str
    NamedKind = Kind
else:  # the names follow from the registry, which a type checker cannot know
    KindName = Literal[tuple(KINDS)]
    NamedKind = Annotated[KindName, WrapValidator(_by_name)]
    """a kind, given by its name or as itself"""
