"""The network: one body and all tasks."""

from collections.abc import Sequence
from itertools import islice
from typing import overload

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.values import Batch, DistinctTexts, Encoded, Taken
from weft.tasks.task import Task


class Network(nn.Module):
    """A body shared by several tasks."""

    def __init__(self, body: Body, tasks: Sequence[Task]) -> None:
        super().__init__()
        self.body = body
        self.tasks = nn.ModuleDict({task.name: task for task in tasks})

    def task(self, name: str) -> Task:
        """Return a task by name."""
        task = self.tasks[name]
        assert isinstance(task, Task)
        return task

    def forward(self, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs [n, k] of batches of any tasks in one packed pass through the body."""
        distinct = DistinctTexts.of([batch.texts for batch in batches])
        return self.outputs(self.body.embed(distinct.encoded), distinct, batches)

    def outputs(self, embedded: Tensor, distinct: DistinctTexts, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs from embeddings [t, w] of the distinct sequences of the batches' texts."""
        texts = [text for batch in batches for text in batch.texts]
        first_only = [self.task(batch.task).pooling.first_only for batch in batches for _ in batch.texts]
        layers = self.body.encode(embedded, distinct.encoded, tokens_read(texts, first_only, distinct.places))
        pieces = iter(split_layers(layers, texts, distinct.places))
        outputs = [
            self.task(batch.task)(list(islice(pieces, len(batch.texts))), batch.texts, batch.words) for batch in batches
        ]
        # losses and their logarithms need more precision than half precision has
        return [output.float() if output.dtype in (torch.bfloat16, torch.float16) else output for output in outputs]


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
    by_layer = [layer.split(sizes) for layer in layers]
    return [tuple(split[i] for split in by_layer) for i in range(len(texts))]
