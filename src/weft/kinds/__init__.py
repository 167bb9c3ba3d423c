"""Kinds of labels. The table below is the registry: a recipe's `kind` is one of these."""

from typing import TYPE_CHECKING, Literal

from weft.kinds.base import Kind
from weft.kinds.classification import Classification
from weft.kinds.matches import Matches
from weft.kinds.multilabel import Multilabel
from weft.kinds.ordinal import Ordinal
from weft.kinds.regression import Regression
from weft.kinds.tags import Tags

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Classification(),
        Ordinal(),
        Multilabel(),
        Regression(),
        Matches(),
        Tags(),
    )
}


if TYPE_CHECKING:
    KindName = str
else:  # the names are computed from the registry, which a type checker does not evaluate
    KindName = Literal[tuple(KINDS)]
