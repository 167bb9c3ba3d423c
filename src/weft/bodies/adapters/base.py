"""Base classes of adapters: small modules that change what a body computes, for all tasks or for one.

An adapter changes a layer at *sites*: at its linear modules (`qkv`, `attention_out`, `inner`, `outer`), at the output
of its two blocks before the residual connection (`attention`, `feed-forward`), or beside the whole layer (`beside`).

Shapes: t tokens (packed) or n x l (padded), w width of the body.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, model_validator
from torch import Tensor, nn

from weft.bodies.shape import BodyShape
from weft.foundation.components import Component
from weft.foundation.errors import UserError

MATRICES: dict[str, tuple[str, ...]] = {
    "qkv": ("query", "key", "value"),
    "attention_out": ("attention-output",),
    "inner": ("intermediate",),
    "outer": ("output",),
}
"""Linear module of a layer -> the matrices that are stacked in it along its outputs. The same for every family."""
BLOCKS = ("attention", "feed-forward")


class LayerAdapter(nn.Module):
    """What an adapter changes in one layer. A method is called only for the sites that are in `sites`."""

    sites: frozenset[str] = frozenset()
    narrow: int = 0
    """Width s of the attention beside the layer, if there is one. Equal for all adapters of a pass."""

    def linear(self, module: str, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the outputs [t, out] of a linear module, changed; `inputs` are [t, in]."""
        raise NotImplementedError

    def block(self, name: str, outputs: Tensor) -> Tensor:
        """Return the output [t, w] of a block, changed; its residual connection follows."""
        raise NotImplementedError

    def queries(self, hidden: Tensor) -> Tensor:
        """Return queries, keys and values [t, 3s] of an attention beside the layer, from the layer's input [t, w]."""
        raise NotImplementedError

    def beside(self, context: Tensor) -> Tensor:
        """Return what is added to the layer's output [t, w], from the context [t, s] of that attention."""
        raise NotImplementedError


class Adapter(nn.Module):
    """One `LayerAdapter` for each set of weights of a body: layers that share their weights share it, too."""

    can_merge: ClassVar[bool] = False
    """Whether `merge` is supported: the adapter is equal to a change of the body's weights."""

    def __init__(self, layers: Sequence[LayerAdapter], **shared: nn.Module) -> None:
        """`shared` are modules that several layers use."""
        super().__init__()
        for name, module in shared.items():
            self.add_module(name, module)
        self.layers = nn.ModuleList(layers)

    def merge(self, layers: Sequence[nn.Module]) -> None:
        """Add the adapter to the weights of the body's layers, in place."""
        raise NotImplementedError


class AdapterOptions(Component):
    """Base class of all adapter configs."""

    per_task: bool = False
    """Whether each task has an adapter of its own. With false, all tasks share one."""
    tasks: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Tasks that have an adapter of their own; all others use the body alone. Defaults to all tasks."""

    @model_validator(mode="after")
    def _tasks_have_their_own(self) -> "AdapterOptions":
        if self.tasks is not None and not self.per_task:
            raise ValueError("`tasks` chooses the tasks with an adapter of their own; it needs per_task = true")
        return self

    @abstractmethod
    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        """Build an adapter for the layers of a body. Raise UserError `adapter: ...` if it does not support the body.

        A new adapter must not change what the body computes.
        """


def linear_module(layer: nn.Module, name: str) -> nn.Linear:
    """Return a linear module of a layer; raise UserError if the family's layers have none of that name."""
    module = getattr(layer, name, None)
    if not isinstance(module, nn.Linear):
        raise UserError(f"adapter: layers of the class {type(layer).__name__} have no linear module {name!r} to adapt")
    return module
