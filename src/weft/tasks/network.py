"""The network: one body and all tasks."""

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.values import Batch, Encoded
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
        texts = [text for batch in batches for text in batch.texts]
        encoded = Encoded.join(texts)
        return self.outputs(self.body.embed(encoded), encoded, batches)

    def outputs(self, embedded: Tensor, encoded: Encoded, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs from embeddings [t, w] of all texts of the batches."""
        texts = [text for batch in batches for text in batch.texts]
        read = tokens_read(texts, [self.task(batch.task).pooling.first_only for batch in batches for _ in batch.texts])
        pieces = iter(split_layers(self.body.encode(embedded, encoded, read), texts))
        outputs = [
            self.task(batch.task)(list(islice(pieces, len(batch.texts))), batch.texts, batch.words) for batch in batches
        ]
        # losses and their logarithms need more precision than half precision has
        return [output.float() if output.dtype in (torch.bfloat16, torch.float16) else output for output in outputs]


def tokens_read(texts: Sequence[Encoded], first_only: Sequence[bool]) -> Tensor | None:
    """Indices, in the joined texts, of the tokens that poolings use: for some texts only first tokens. None for all."""
    if not any(first_only):
        return None
    found, before = [], 0
    for text, only in zip(texts, first_only, strict=True):
        found.append(before + (text.starts if only else torch.arange(len(text.ids), device=text.ids.device)))
        before += len(text.ids)
    return torch.cat(found)


def split_layers(layers: tuple[Tensor, ...], texts: Sequence[Encoded]) -> list[tuple[Tensor, ...]]:
    """Invert `Encoded.join`: return the token states of each text in every layer."""
    sizes = [len(text.ids) for text in texts]
    by_layer = [layer.split(sizes) for layer in layers]
    return [tuple(split[i] for split in by_layer) for i in range(len(texts))]
