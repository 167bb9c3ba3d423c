"""The network: one body and all tasks."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters.base import Adapter
from weft.bodies.body import Body
from weft.foundation.values import Batch, Encoded
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

    def task(self, name: str) -> Task:
        """Return a task by name."""
        task = self.tasks[name]
        assert isinstance(task, Task)
        return task

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
        texts = [text for batch in batches for text in batch.texts]
        encoded = Encoded.join(texts)
        return self.outputs(self.body.embed(encoded), encoded, batches)

    def outputs(self, embedded: Tensor, encoded: Encoded, batches: Sequence[Batch]) -> list[Tensor]:
        """Compute the outputs from embeddings [t, w] of all texts of the batches."""
        texts = [text for batch in batches for text in batch.texts]
        read = tokens_read(texts, [self.task(batch.task).pooling.first_only for batch in batches for _ in batch.texts])
        spans = [(batch.task, len(text.ids)) for batch in batches for text in batch.texts]
        pieces = iter(split_layers(self.states(embedded, encoded, spans, read), texts))
        outputs = [self.task(batch.task)(list(islice(pieces, len(batch.texts))), batch.texts) for batch in batches]
        # losses and their logarithms need more precision than half precision has
        return [output.float() if output.dtype in (torch.bfloat16, torch.float16) else output for output in outputs]


def layer_of(parameter: str) -> int | None:
    """Return the number of the layer that a parameter of the body or of an adapter belongs to; None for others."""
    found = re.match(r"(?:body|adapter|adapters\.[^.]+)\.layers\.(\d+)\.", parameter)
    return int(found[1]) if found else None


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
