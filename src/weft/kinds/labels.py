"""What a task's labels are."""

from dataclasses import field, fields, replace
from typing import Annotated, Any, TypeVar

from numpy.typing import NDArray
from pydantic import PlainValidator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds.base import Kind

Values = TypeVar("Values", float, NDArray[Any], Tensor)


def _kind(value: Any) -> Kind:
    """A kind, or the one with this name."""
    from weft.kinds import KINDS  # which need Labels

    if isinstance(value, Kind):
        return value
    if isinstance(value, str) and value in KINDS:
        return KINDS[value]
    *others, last = map(repr, KINDS)
    raise PydanticCustomError(
        "literal_error", "Input should be {expected}", {"expected": f"{', '.join(others)} or {last}"}
    )


@dataclass(frozen=True)
class Labels:
    """What a task's labels are. Fixed before training and saved with the model."""

    kind: Annotated[Kind, PlainValidator(_kind)]
    """may be given by its name"""
    names: tuple[str, ...] = ()
    """class names, in the order of the class numbers; empty for a regression"""
    low: float = 0.0
    high: float = 1.0
    """range of a regression's labels, in their own units"""
    bounded: bool = True
    """whether a label outside the range is an error: it is if the range was declared, not if it was only seen"""
    scaled: bool = False
    """whether a regression is trained on labels brought to 0..1"""
    numbered: bool = False
    """whether a class may also be given by its number: if names were declared and none of them is a number itself"""
    positive: str | None = field(default=None, compare=False)
    """the one of two classes that precision, recall and F1 are about; it changes no answer of a model"""

    @property
    def is_binary(self) -> bool:
        """whether each row has one of two classes"""
        return self.kind.has_one_class and len(self.names) == 2

    @property
    def limits(self) -> tuple[float, float] | None:
        """the range of labels that are numbers"""
        return (self.low, self.high) if self.kind.has_numbers else None

    def fits(self, kind: str) -> bool:
        """Whether these can be the labels of a task of this kind; those of a stranger's model may be anything."""
        return self.kind.name == kind and self.kind.fits(self)

    def in_units(self, values: Values) -> Values:
        """Predicted or target numbers in the label's own units; what is no number stays as it is."""
        return self.kind.in_units(self, values)

    def from_units(self, values: Values) -> Values:
        """Numbers as a regression is trained on them: the inverse of `in_units`."""
        return self.kind.from_units(self, values)

    def with_positive(self, name: str, key: str) -> "Labels":
        """The same labels with a positive class; `key` is what messages call it."""
        if not self.is_binary:
            found = self.kind.counted(self)
            raise UserError(f"{key}: names the positive one of two classes, but the task has {found}; leave it out")
        if name not in self.names:
            raise UserError(f"{key}: found {name!r}, expected {' or '.join(self.names)}")
        return replace(self, positive=name)

    def content(self) -> dict[str, Any]:
        """Plain values, as weft.json has them."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return plain | {"kind": self.kind.name, "names": list(self.names)}
