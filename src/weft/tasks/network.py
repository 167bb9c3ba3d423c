"""The network: one body and all tasks."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import overload

import torch
from torch import Tensor, nn

from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters.base import Adapter
from weft.bodies.body import Body
from weft.foundation.values import Batch, DistinctTexts, Encoded, Taken
from weft.tasks.task import Task

Named = list[tuple[str, nn.Parameter]]
SHARED = ("body.", "adapter.")
"""prefixes of the parameters that all tasks share; the others belong to one task, or to tasks that share a head"""


class Network(nn.Module):
    """A body shared by several tasks, and the adapters on it: one for all tasks, or one for each."""

    def __init__(
        self,
        body: Body,
        tasks: Sequence[Task],
        adapter: Adapter | None = None,
        adapters: Mapping[str, Adapter] | None = None,
    ) -> None:
        """`adapter` is shared by all tasks, `adapters` belong to one task each; a network has at most one kind."""
        super().__init__()
        self.body = body
        self.adapter = adapter
        self.adapters = nn.ModuleDict(adapters or {})
        self.tasks = nn.ModuleDict({task.name: task for task in tasks})
        self.settled = 0
        """number of the body's lowest layers whose outputs do not change in training: they and the embeddings are
        frozen and run without dropout"""

    def task(self, name: str) -> Task:
        """Return a task by name."""
        task = self.tasks[name]
        assert isinstance(task, Task)
        return task

    def train(self, mode: bool = True) -> "Network":
        """Set training mode; the settled layers stay in eval mode, without dropout."""
        super().train(mode)
        for module in self.settled_modules():
            module.eval()
        return self

    def settled_modules(self) -> list[nn.Module]:
        """Return all modules that the outputs of the settled layers depend on; none if no layer is settled."""
        if not self.settled:
            return []
        body, every = self.body, self.settled == self.body.shape.layers
        count = min(self.settled, len(body.layers))  # sets of weights
        adapters = [own for own in (self.adapter, *self.adapters.values()) if own is not None]
        found = [body.embeddings, *body.layers[:count], body.relative, body.final if every else None]
        for adapter in adapters:
            layers = adapter.layers
            assert isinstance(layers, nn.ModuleList)
            found += [adapter] if every else list(layers[:count])
        return [module for module in found if module is not None]

    @property
    def shares_states(self) -> bool:
        """Whether a sequence has the same hidden states for all tasks. If not, equal sequences are not merged."""
        return not self.adapters

    def adapter_of(self, task: str) -> Adapter | None:
        """Return the adapter of a task: its own, or the shared one."""
        if task not in self.adapters:
            return self.adapter
        own = self.adapters[task]
        assert isinstance(own, Adapter)
        return own

    def shared_parameters(self) -> Named:
        """Return the parameters that all tasks share: those of the body and of a shared adapter."""
        return [(name, parameter) for name, parameter in self.named_parameters() if name.startswith(SHARED)]

    def task_parameters(self) -> Named:
        """Return all other parameters: heads, poolings and the adapters of single tasks."""
        return [(name, parameter) for name, parameter in self.named_parameters() if not name.startswith(SHARED)]

    def states(
        self, embedded: Tensor, encoded: Encoded, spans: Sequence[tuple[str, int]], read: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Run the layers of the body, with the adapters, on embeddings [t, w] of sequences of any tasks in one pass.

        `spans` are tasks and numbers of tokens, in the order of the tokens. `read` is explained in `Body.encode`.
        """
        return self.body.encode(embedded, encoded, read, self.adapted(spans))

    def read(
        self, encoded: Encoded, spans: Sequence[tuple[str, int]], read: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Embed sequences and run the layers on them, like `states`."""
        hidden: tuple[Tensor, ...] = self.body(encoded, read, self.adapted(spans))
        return hidden

    def adapted(self, spans: Sequence[tuple[str, int]]) -> AdaptedPass:
        """Return the adapters of a pass; `spans` are tasks and numbers of tokens."""
        return AdaptedPass([(self.adapter_of(task), size) for task, size in spans])

    def forward(self, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs [n, k] of batches of any tasks in one packed pass through the body."""
        distinct = self.distinct(batches)
        return self.outputs(self.body.embed(distinct.encoded), distinct, batches)

    def distinct(self, batches: Sequence[Batch]) -> DistinctTexts:
        """Return the texts of batches, packed for one pass: equal sequences are merged if their states are equal."""
        return DistinctTexts.of([batch.texts for batch in batches], merge=self.shares_states)

    def outputs(self, embedded: Tensor, distinct: DistinctTexts, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs from embeddings [t, w] of the distinct sequences of the batches' texts.

        A batch with stored vectors has no texts and does not go through the body.
        """
        texts = [text for batch in batches for text in batch.texts]
        pieces = iter(self._pieces(embedded, distinct, batches, texts) if texts else ())
        outputs = [
            self.task(batch.task)(list(islice(pieces, len(batch.texts))), batch.texts, batch.words)
            if batch.vectors is None
            else self.task(batch.task).outputs(list(batch.vectors))
            for batch in batches
        ]
        # losses and their logarithms need more precision than half precision has
        return [output.float() if output.dtype in (torch.bfloat16, torch.float16) else output for output in outputs]

    def _pieces(
        self, embedded: Tensor, distinct: DistinctTexts, batches: Sequence[Batch], texts: Sequence[Encoded]
    ) -> Sequence[Sequence[Tensor]]:
        """Run the body; return the token states of each text in every layer."""
        first_only = [self.task(batch.task).pooling.first_only for batch in batches for _ in batch.texts]
        spans = [(batch.task, len(text.ids)) for batch in batches for text in batch.texts]
        if self.shares_states:  # all tasks have the same adapter, or none
            spans = [(batches[0].task, len(distinct.encoded.ids))]
        layers = self.states(embedded, distinct.encoded, spans, tokens_read(texts, first_only, distinct.places))
        return split_layers(layers, texts, distinct.places)


def layer_of(parameter: str) -> int | None:
    """Return the number of the layer that a parameter of the body or of an adapter belongs to; None for others."""
    found = re.match(r"(?:body|adapter|adapters\.[^.]+)\.layers\.(\d+)\.", parameter)
    return int(found[1]) if found else None


class TextLayers(Sequence[Tensor]):
    """The states of one text's tokens in every layer, taken from a pass when a layer is asked for."""

    def __init__(self, layers: tuple[Tensor, ...], place: Taken) -> None:
        self.layers = layers
        self.place = place

    def __len__(self) -> int:
        return len(self.layers)

    @overload
    def __getitem__(self, number: int) -> Tensor: ...
    @overload
    def __getitem__(self, number: slice) -> list[Tensor]: ...
    def __getitem__(self, number: int | slice) -> Tensor | list[Tensor]:
        if isinstance(number, slice):
            return [layer[self.place] for layer in self.layers[number]]
        return self.layers[number][self.place]


def tokens_read(
    texts: Sequence[Encoded], first_only: Sequence[bool], places: Sequence[Taken] | None = None
) -> Tensor | None:
    """Indices, in a pass, of the tokens that poolings use: for some texts only first tokens. None for all.

    `places` are the tokens of each text in the pass. Defaults to texts that follow each other.
    """
    if not any(first_only):
        return None
    found, before = [], 0
    for i, (text, only) in enumerate(zip(texts, first_only, strict=True)):
        every = torch.arange(len(text.ids), device=text.ids.device)
        used = text.starts if only else every
        if places is None:
            found.append(before + used)
        else:
            place = places[i]
            found.append(used + place.start if isinstance(place, slice) else place[used])
        before += len(text.ids)
    return torch.cat(found) if places is None else torch.cat(found).unique()


def split_layers(
    layers: tuple[Tensor, ...], texts: Sequence[Encoded], places: Sequence[Taken] | None = None
) -> Sequence[Sequence[Tensor]]:
    """Return the token states of each text in every layer, from a pass over all texts; `places` as above."""
    if places is not None:
        return [TextLayers(layers, place) for place in places]
    sizes = [len(text.ids) for text in texts]
    # layers that a pass from stored states has skipped are empty
    by_layer = [layer.split(sizes) if len(layer) else (layer,) * len(texts) for layer in layers]
    return [tuple(split[i] for split in by_layer) for i in range(len(texts))]
