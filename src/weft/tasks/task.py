"""What one task adds to the shared body."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.bodies.dropout import drop_alike
from weft.foundation.components import require_made
from weft.foundation.errors import UserError
from weft.foundation.values import Encoded
from weft.kinds.labels import Labels
from weft.kinds.metrics import choose_metrics
from weft.losses.base import Loss
from weft.nn.heads.base import Head, HeadShape
from weft.nn.layers import build_layer
from weft.nn.pooling.base import Pooling
from weft.regularizers.base import Divergence, Regularizer
from weft.tasks.config import TaskConfig


@dataclass(frozen=True)
class TaskParts:
    """The modules of a task, in the order in which a batch passes them."""

    layer: nn.Module
    """which of the body's layers the task reads"""
    pooling: Pooling
    head: Head
    loss: Loss
    regularizer: Regularizer | None = None


class Task(nn.Module):
    """layer -> pooling -> dropout -> head -> loss"""

    def __init__(
        self,
        name: str,
        labels: Labels,
        parts: TaskParts,
        *,
        dropout: float,
        metrics: tuple[str, ...],
        class_weights: Tensor | None = None,
    ) -> None:
        """`class_weights` [classes] say how much a row counts by its class; they matter in training alone."""
        super().__init__()
        self.name = name
        self.labels = labels
        self.metrics = metrics
        self.layer = parts.layer
        self.pooling = parts.pooling
        self.dropout = dropout
        self.head = parts.head
        self.loss = parts.loss
        self.regularizer = parts.regularizer
        self.divergence = Divergence(labels, parts.loss.read)
        """how far two outputs are apart, for regularizers"""
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)

    @property
    def primary(self) -> str:
        """the metric that counts in the overall score"""
        return self.metrics[0]

    def vectors(self, hidden: tuple[Tensor, ...], encoded: Encoded) -> Tensor:
        """[n, width] what the task's pooling makes of a body's layers"""
        pooled: Tensor = self.pooling(self.layer(hidden), encoded)
        return pooled

    def padded_vectors(self, hidden: tuple[Tensor, ...], mask: Tensor) -> Tensor:
        """The same of a body's padded layers, for export"""
        pooled: Tensor = self.pooling.padded(self.layer(hidden), mask)
        return pooled

    def outputs(self, vectors: list[Tensor]) -> Tensor:
        """[n, k] from one vector for each row, or two"""
        dropped = drop_alike(vectors, self.dropout) if self.training else vectors
        output: Tensor = self.head(dropped[0], dropped[1] if len(dropped) > 1 else None)
        return output

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """[n] one loss for each row, times the weight of its class"""
        losses: Tensor = self.loss(output, target)
        return losses if self.class_weights is None else losses * self.class_weights[target]

    def forward(self, hidden: list[tuple[Tensor, ...]], texts: tuple[Encoded, ...]) -> Tensor:
        """[n, k]; `hidden` and `texts` have one entry, or two for a bi reading."""
        return self.outputs([self.vectors(side, encoded) for side, encoded in zip(hidden, texts, strict=True)])

    @torch.no_grad()
    def read(self, vectors: list[Tensor]) -> Tensor:
        """Probabilities or numbers for vectors that are already there (evaluation)."""
        answer: Tensor = self.loss.read(self.outputs(vectors))
        return answer


def build_task(
    name: str,
    config: TaskConfig,
    labels: Labels,
    body: Body,
    dropout: float,
    shared: dict[str, nn.Module],
    class_weights: Tensor | None = None,
) -> Task:
    """A task's modules on a body, with random heads; `shared` holds what several heads share."""
    if config.reading == "single" and config.data.text2 is not None:
        raise UserError(
            f"tasks.{name}.reading: 'single' would ignore the column {config.data.text2!r} that data.text2 names; "
            "choose bi, cross or concat, or leave text2 out"
        )
    pooling = config.pooling.build(body)
    require_made(config.pooling, pooling, Pooling, f"tasks.{name}.pooling")
    loss = config.chosen_loss.build(labels, name, config.head.bounds)
    require_made(config.chosen_loss, loss, Loss, f"tasks.{name}.loss")
    regularizer = config.regularizer.build() if config.regularizer else None
    if config.regularizer:
        require_made(config.regularizer, regularizer, Regularizer, f"tasks.{name}.regularizer")
    shape = HeadShape(pooling.width, config.reading == "bi", loss.outputs, name, shared)
    # in this order: it decides what each of them draws from the seed
    head = _build_head(config, shape)
    metrics = choose_metrics(labels, config.metrics, name)
    layer = build_layer(config.layer, body.shape.layers, name)
    parts = TaskParts(layer, pooling, head, loss, regularizer)
    return Task(name, labels, parts, dropout=dropout, metrics=metrics, class_weights=class_weights)


def _build_head(config: TaskConfig, shape: HeadShape) -> Head:
    """A head of the task's own, or the one that another task with the same `share_head` has built."""
    head: Head = config.head.build(shape)
    require_made(config.head, head, Head, f"tasks.{shape.task}.head")
    if config.share_head is None:
        return head
    other = shape.shared.setdefault(f"head/{config.share_head}", head)
    assert isinstance(other, Head)
    tensors, others = ({k: p.shape for k, p in h.named_parameters()} for h in (head, other))
    if type(other) is not type(head) or tensors != others:
        raise UserError(
            f"tasks.{shape.task}.share_head: the head {config.share_head!r} of another task has another form; "
            "tasks that share a head need the same head, reading, pooling and number of labels"
        )
    return other
