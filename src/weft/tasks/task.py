"""The modules of one task on top of the shared body."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.bodies.dropout import drop_alike
from weft.foundation.components import require_made
from weft.foundation.errors import UserError
from weft.foundation.values import Encoded, Words
from weft.kinds.labels import Labels
from weft.kinds.metrics import choose_metrics
from weft.losses.base import Loss
from weft.nn.heads.base import Head, HeadShape
from weft.nn.layers import build_layer
from weft.nn.pooling.base import Pooling
from weft.nn.pooling.windows import build_window_pooling
from weft.regularizers.base import Divergence, Regularizer
from weft.tasks.config import TaskConfig


@dataclass(frozen=True)
class TaskParts:
    """The modules of a task, in forward order."""

    layer: nn.Module
    """selects the body layer"""
    pooling: Pooling
    head: Head
    loss: Loss
    windows: Pooling
    """pools the vectors of the windows of a text"""
    regularizer: Regularizer | None = None
    batch_size: int = 16
    """rows per forward pass in training"""


class Task(nn.Module):
    """layer -> pooling -> (pooling of windows) -> dropout -> head -> loss"""

    def __init__(
        self,
        name: str,
        labels: Labels,
        parts: TaskParts,
        *,
        dropout: float,
        metrics: tuple[str, ...],
        class_weights: Tensor | None = None,
        tunes_thresholds: bool = False,
        auxiliary: bool = False,
    ) -> None:
        """`class_weights` [classes] are factors on a row's loss by its class; they are used only in training.

        `tunes_thresholds`: whether evaluations in training tune the decision thresholds. `auxiliary`: whether the task
        does not count in the overall score.
        """
        super().__init__()
        self.name = name
        self.labels = labels
        self.metrics = metrics
        self.tunes_thresholds = tunes_thresholds
        self.auxiliary = auxiliary
        self.layer = parts.layer
        self.pooling = parts.pooling
        self.windows = parts.windows
        self.dropout = dropout
        self.head = parts.head
        self.loss = parts.loss
        self.regularizer = parts.regularizer
        self.batch_size = parts.batch_size
        self.divergence = Divergence(labels, parts.loss.read)
        """divergence of two outputs, for regularizers and output penalties"""
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)

    @property
    def primary(self) -> str:
        """the primary metric, which counts in the overall score"""
        return self.metrics[0]

    def vectors(self, hidden: Sequence[Tensor], encoded: Encoded) -> Tensor:
        """[n, width] pooled vectors of all texts, from the hidden states of all layers; [t, width] if the pooling keeps
        tokens"""
        pooled: Tensor = self.pooling(self.layer(hidden), encoded)
        if encoded.windows is not None and not self.pooling.keeps_tokens:
            pooled = self.windows(pooled, encoded.by_text)
        return pooled

    def padded_vectors(self, hidden: Sequence[Tensor], mask: Tensor) -> Tensor:
        """[n, width] pooled vectors from padded hidden states, for export"""
        pooled: Tensor = self.pooling.padded(self.layer(hidden), mask)
        return pooled

    def outputs(self, vectors: list[Tensor]) -> Tensor:
        """[n, k] head outputs, from one vector per row, or two and those of hard negatives for a bi reading"""
        dropped = drop_alike(vectors, self.dropout) if self.training else vectors
        output: Tensor = self.head(dropped[0], dropped[1] if len(dropped) > 1 else None, *dropped[2:])
        return output

    def losses(self, output: Tensor, target: Tensor, words: Words | None = None) -> Tensor:
        """[n] loss of each row, multiplied by its class weight; for labels of words, the sum over the row's words"""
        if words is not None:
            return self.loss.by_row(output, target, words, self.class_weights)
        losses: Tensor = self.loss(output, target)
        return losses if self.class_weights is None else losses * self.class_weights[target]

    def imitation(self, output: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        """[n] distillation loss of each row, for teachers' predictions in the form of `read`"""
        student: Tensor = self.loss.read(output)
        return self.labels.kind.imitation(student, teacher.to(student.dtype), temperature)

    def losses_apart(self, output: Tensor, target: Tensor) -> Tensor:
        """[n] loss of each row of a whole split; a loss that sees the batch gets batches of the training size"""
        size = self.batch_size if self.loss.sees_batch else len(output)
        parts = zip(output.split(size), target.split(size), strict=True)
        return torch.cat([self.losses(*part) for part in parts])

    def forward(
        self, hidden: Sequence[Sequence[Tensor]], texts: tuple[Encoded, ...], words: Words | None = None
    ) -> Tensor:
        """[n, k], or [u, k] for labels of words; `hidden` and `texts` have one entry, or two for a bi reading."""
        vectors = [self.vectors(side, encoded) for side, encoded in zip(hidden, texts, strict=True)]
        return self.outputs(vectors if words is None else [vectors[0][words.tokens(texts[0])]])

    @torch.no_grad()
    def read(self, vectors: list[Tensor]) -> Tensor:
        """Compute predictions (probabilities or numbers) from pooled vectors."""
        answer: Tensor = self.loss.read(self.outputs(vectors))
        return answer

    @torch.no_grad()
    def read_words(self, output: Tensor, words: Words) -> Tensor:
        """[u, 2] predicted class and its probability, from the outputs [u, k] of words"""
        answer: Tensor = self.loss.read_words(output, words)
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
    """Build a task's modules with a randomly initialized head; `shared` collects the modules that heads share."""
    if config.reading != "single" and config.data.text2 is None:
        raise UserError(f"tasks.{name}.data.text2: is missing; the reading {config.reading!r} needs two texts")
    if config.reading == "single" and config.data.text2 is not None:
        raise UserError(
            f"tasks.{name}.reading: 'single' would ignore the column {config.data.text2!r} that data.text2 names; "
            "choose bi, cross or concat, or leave text2 out"
        )
    pooling = config.pooling.build(body)
    require_made(config.pooling, pooling, Pooling, f"tasks.{name}.pooling")
    loss = config.chosen_loss.build(labels, name, config.head.bounds)
    require_made(config.chosen_loss, loss, Loss, f"tasks.{name}.loss")
    _require_same_form(config, loss, name)
    regularizer = config.regularizer.build() if config.regularizer else None
    if config.regularizer:
        require_made(config.regularizer, regularizer, Regularizer, f"tasks.{name}.regularizer")
    shape = HeadShape(pooling.width, config.reading == "bi", loss.outputs, name, shared)
    # keep this order: it determines the random numbers that initialize each module
    head = _build_head(config, shape)
    metrics = choose_metrics(labels, config.metrics, name)
    layer = build_layer(config.layer, body.shape.layers, name)
    windows = build_window_pooling(config.long_texts.pooled_by, pooling.width)
    parts = TaskParts(layer, pooling, head, loss, windows, regularizer, config.batch_size)
    return Task(
        name,
        labels,
        parts,
        dropout=dropout,
        metrics=metrics,
        class_weights=class_weights,
        tunes_thresholds=_tunes_thresholds(name, config, labels),
        auxiliary=config.auxiliary,
    )


def _tunes_thresholds(name: str, config: TaskConfig, labels: Labels) -> bool:
    if config.thresholds == "tuned" and not labels.kind.decisions(labels.names):
        raise UserError(
            f'tasks.{name}.thresholds: "tuned" is for multilabel and two classes, but the task has '
            f"{labels.kind.counted(labels)}; leave it out"
        )
    return config.thresholds == "tuned"


def _require_same_form(config: TaskConfig, loss: Loss, name: str) -> None:
    """Raise UserError if the loss reads vectors and the head gives something else, or the reverse."""
    if loss.reads_vectors == config.head.gives_vectors:
        return
    wanted = 'head = "vectors"' if loss.reads_vectors else "a head with numbers as outputs, such as linear or cosine"
    raise UserError(
        f"tasks.{name}.head: found {config.head.name!r}, but the loss {config.chosen_loss.name!r} needs {wanted}"
    )


def _build_head(config: TaskConfig, shape: HeadShape) -> Head:
    """Build the task's head, or return the head of another task with the same `share_head`."""
    head: Head = config.head.build(shape)
    require_made(config.head, head, Head, f"tasks.{shape.task}.head")
    if config.share_head is None:
        return head
    other = shape.shared.setdefault(f"head/{config.share_head}", head)
    assert isinstance(other, Head)
    tensors, others = ({k: p.shape for k, p in h.named_parameters()} for h in (head, other))
    if type(other) is not type(head) or tensors != others:
        raise UserError(
            f"tasks.{shape.task}.share_head: the head {config.share_head!r} of another task has a different structure; "
            "tasks that share a head need the same head, reading, pooling and number of labels"
        )
    return other
