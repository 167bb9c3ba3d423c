"""Base classes of adapters: small modules that change what a body computes, for all tasks or for one.

An adapter changes a layer at *sites*: at its linear modules (`qkv`, `attention_out`, `inner`, `outer`), at the output
of its two blocks before the residual connection (`attention`, `feed-forward`), or beside the whole layer (`beside`).

Shapes: t tokens (packed) or n x l (padded), w width of the body.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from weft.bodies.layout import TokenLayout
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


class AdaptedLayer:
    """The adapters of one layer in one forward pass, each with the tokens that it applies to.

    All tokens of a task are adjacent. The layer's own products run over the tokens of all tasks at once; only an
    adapter's products run task by task, each on a slice.
    """

    def __init__(self, spans: Sequence[tuple[LayerAdapter | None, int]]) -> None:
        """`spans`: adapter and number of tokens, in the order of the tokens. No spans for a body without adapters."""
        self.spans = spans
        self.sites = frozenset[str]().union(*(adapter.sites for adapter, _ in spans if adapter is not None))

    def linear(self, name: str, module: nn.Linear, inputs: Tensor) -> Tensor:
        """Apply a linear module of the layer, and what the adapters change in it."""
        outputs: Tensor = module(inputs)
        return self.update(name, inputs, outputs)

    def update(self, name: str, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the outputs of a linear module as the adapters change them."""
        return self._each(name, lambda own, x, y: own.linear(name, x, y), lambda _, y: y, inputs, outputs)

    def block(self, name: str, outputs: Tensor) -> Tensor:
        """Return the output of a block as the adapters change it."""
        return self._each(name, lambda own, y: own.block(name, y), lambda y: y, outputs)

    def beside(self, hidden: Tensor, layout: TokenLayout, dropout: float) -> Tensor | None:
        """Return what the adapters add to the layer's output, [t, w]; None if they add nothing.

        Attention does not cross sequences, so one attention serves the adapters of all tasks.
        """
        if "beside" not in self.sites:
            return None
        narrow = max(adapter.narrow for adapter, _ in self.spans if adapter is not None)

        def zeros(states: Tensor, width: int) -> Tensor:
            return states.new_zeros(*states.shape[:-1], width)

        qkv = self._each("beside", lambda own, x: own.queries(x), lambda x: zeros(x, 3 * narrow), hidden)
        context = layout.attend(qkv, dropout)
        return self._each("beside", lambda own, x: own.beside(x), lambda x: zeros(x, hidden.shape[-1]), context)

    def at(self, only: Tensor) -> "AdaptedLayer":
        """Return the same adapters for a selection of the tokens, given by their indices in ascending order."""
        if len(self.spans) < 2:
            return self
        ends = torch.tensor(self.sizes, device=only.device).cumsum(0)
        before = [0, *torch.searchsorted(only, ends).tolist()]
        counts = [end - start for start, end in pairwise(before)]
        return AdaptedLayer([(adapter, n) for (adapter, _), n in zip(self.spans, counts, strict=True)])

    def alone(self) -> list["AdaptedLayer"]:
        """Return the adapters one by one, each for any number of tokens."""
        return [AdaptedLayer([span]) for span in self.spans] or [self]

    @property
    def sizes(self) -> list[int]:
        """Number of tokens of each span."""
        return [size for _, size in self.spans]

    def _each(
        self, site: str, act: Callable[..., Tensor], otherwise: Callable[..., Tensor], *tensors: Tensor
    ) -> Tensor:
        """Return `act(adapter, *tensors)` for the tokens of each adapter, `otherwise(*tensors)` for other tokens."""
        if site not in self.sites:
            return otherwise(*tensors)
        if len(self.spans) == 1:
            return act(self.spans[0][0], *tensors)
        pieces = zip(*(tensor.split(self.sizes) for tensor in tensors), strict=True)
        changed = [
            otherwise(*own) if adapter is None else act(adapter, *own)
            for (adapter, _), own in zip(self.spans, pieces, strict=True)
        ]
        return torch.cat(changed)


PLAIN = AdaptedLayer([])
"""A layer without adapters."""


class AdaptedPass:
    """The adapters of one forward pass: adjacent spans of tokens with the same adapter are one span."""

    def __init__(self, spans: Sequence[tuple[Adapter | None, int]] = ()) -> None:
        """`spans`: adapter and number of tokens, in the order of the tokens."""
        grouped = groupby(spans, key=lambda span: span[0])
        self.spans = [(adapter, sum(size for _, size in group)) for adapter, group in grouped]

    def layer(self, number: int) -> AdaptedLayer:
        """Return the adapters of one layer, by the number of its set of weights."""
        if not any(adapter is not None for adapter, _ in self.spans):
            return PLAIN
        spans: list[tuple[LayerAdapter | None, int]] = []
        for adapter, size in self.spans:
            own = None if adapter is None else adapter.layers[number]
            assert own is None or isinstance(own, LayerAdapter)
            spans.append((own, size))
        return AdaptedLayer(spans)


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
