"""Adapters in a forward pass: which adapter changes which tokens.

Shapes: t tokens (packed) or n x l (padded), w width of the body.
"""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

import torch
from torch import Tensor, nn

from weft.bodies.adapters.base import Adapter, LayerAdapter
from weft.bodies.layout import TokenLayout


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
