"""What one task adds to the shared body."""

import torch
from torch import Tensor, nn

from weft.data.labels import Labels
from weft.errors import UserError
from weft.evaluation.metrics import choose_metrics
from weft.losses.base import Loss
from weft.nn.body import Body
from weft.nn.heads.base import Head, HeadShape
from weft.nn.pooling.base import Pooling
from weft.tasks.config import TaskConfig
from weft.types import Encoded, TaskOutput


class Task(nn.Module):
    """pooling -> dropout -> head -> loss"""

    def __init__(
        self,
        name: str,
        labels: Labels,
        pooling: Pooling,
        head: Head,
        loss: Loss,
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
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.head = head
        self.loss = loss
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)

    @property
    def primary(self) -> str:
        """the metric that counts in the overall score"""
        return self.metrics[0]

    def vectors(self, hidden: tuple[Tensor, ...], encoded: Encoded) -> Tensor:
        """[n, width] what the task's pooling makes of a body's layers"""
        pooled: Tensor = self.pooling(hidden[-1], encoded)
        return pooled

    def outputs(self, vectors: list[Tensor]) -> Tensor:
        """[n, k] from one vector for each row, or two"""
        dropped = [self.dropout(side) for side in vectors]
        output: Tensor = self.head(dropped[0], dropped[1] if len(dropped) > 1 else None)
        return output

    def forward(self, hidden: list[tuple[Tensor, ...]], texts: tuple[Encoded, ...], target: Tensor) -> TaskOutput:
        """`hidden` and `texts` have one entry, or two for a bi reading."""
        vectors = [self.vectors(side, encoded) for side, encoded in zip(hidden, texts, strict=True)]
        output = self.outputs(vectors)
        losses = self.loss(output, target)
        return TaskOutput(output, losses if self.class_weights is None else losses * self.class_weights[target])

    @torch.no_grad()
    def read(self, vectors: list[Tensor]) -> Tensor:
        """Probabilities or numbers for vectors that are already there (evaluation)."""
        answer: Tensor = self.loss.read(self.outputs(vectors))
        return answer


def build_task(
    name: str, config: TaskConfig, labels: Labels, body: Body, dropout: float, class_weights: Tensor | None = None
) -> Task:
    """A task's modules on a body, with random heads."""
    pooling = config.pooling.build(body)
    loss = config.chosen_loss.build(labels, name)
    if config.reading == "single" and config.data.text2 is not None:
        raise UserError(
            f"tasks.{name}.reading: 'single' would ignore the column {config.data.text2!r} that data.text2 names; "
            "choose bi or cross, or leave text2 out"
        )
    pair = config.reading == "bi"
    head = config.head.build(HeadShape(pooling.width, pair=pair, outputs=loss.outputs, task=name))
    metrics = choose_metrics(labels, config.metrics, name)
    return Task(name, labels, pooling, head, loss, dropout=dropout, metrics=metrics, class_weights=class_weights)
