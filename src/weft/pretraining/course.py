"""The course of pretraining: sequences, masks and learning rate of every step."""

from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor

from weft.foundation.config import Config
from weft.foundation.randomness import generator
from weft.foundation.values import Encoded, Rows
from weft.pretraining.corpus import Corpus
from weft.pretraining.masking import Masker
from weft.training.optimizer import share_of_peak


class PretrainConfig(Config):
    """How a body is pretrained."""

    seed: int = Field(default=11711, ge=0)
    """Seed of the order of the texts, of masks and of dropout."""
    epochs: int = Field(default=1, ge=1)
    """Passes over all texts. --budget replaces it by a number of steps."""
    batch_size: int = Field(default=32, ge=1)
    """Sequences per step."""
    max_length: int = Field(default=128, ge=8)
    """Maximum number of tokens in a sequence. A longer text becomes several sequences."""
    lr: float = Field(default=1e-4, gt=0)
    """Peak learning rate."""
    mask: float = Field(default=0.15, gt=0, lt=1)
    """Fraction of the tokens to predict."""
    warmup: float = Field(default=0.06, ge=0, lt=1)
    """Fraction of the steps with a rising learning rate; then it falls linearly to zero."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay on all weights except LayerNorms and biases."""
    clip: float = Field(default=1.0, gt=0)
    """Maximum norm of the gradient."""
    dev_fraction: float = Field(default=0.02, gt=0, lt=1)
    """Fraction of the sequences held out to measure the dev loss, at most 1,000 sequences."""
    every_steps: int = Field(default=200, ge=1)
    """Steps between checkpoints."""


@dataclass(frozen=True)
class MaskedBatch:
    """Masked sequences, the positions to predict and their true tokens."""

    encoded: Encoded
    positions: Tensor
    targets: Tensor


class MaskedCourse:
    """The sequences, masks and learning rate of every step; a function of the step, without memory of earlier ones."""

    def __init__(
        self, corpus: Corpus, masker: Masker, config: PretrainConfig, steps: int | None, device: torch.device
    ) -> None:
        """`steps` is a budget that replaces the epochs."""
        self.corpus = corpus
        self.masker = masker
        self.config = config
        self.device = device
        self.train, self.dev = corpus.split(config.dev_fraction, config.seed)
        self.per_epoch = -(-len(self.train) // config.batch_size)
        self.steps = config.epochs * self.per_epoch if steps is None else steps
        ends = range(self.per_epoch, self.steps, self.per_epoch) if steps is None else ()
        self.evaluations = {0, *ends, self.steps}
        self._order: tuple[int, Rows] = (-1, self.train)

    def rate(self, step: int) -> float:
        warmup = min(round(self.config.warmup * self.steps), self.steps - 1)
        return self.config.lr * share_of_peak("linear", step, self.steps, warmup)

    def batch(self, step: int) -> MaskedBatch:
        epoch, number = divmod(step, self.per_epoch)
        if self._order[0] != epoch:
            order = generator(self.config.seed, epoch, "pretraining", "order").permutation(self.train)
            self._order = epoch, order
        size = self.config.batch_size
        return self._masked(self._order[1][number * size : (number + 1) * size], step, "masks")

    def dev_batches(self) -> list[MaskedBatch]:
        """Return the held-out sequences in batches, always with the same masks."""
        size = self.config.batch_size
        parts = [self.dev[start : start + size] for start in range(0, len(self.dev), size)]
        return [self._masked(part, number, "dev masks") for number, part in enumerate(parts)]

    def _masked(self, numbers: Rows, *purpose: str | int) -> MaskedBatch:
        encoded = self.corpus.encoded(numbers)
        made = self.masker(encoded.ids.numpy(), generator(self.config.seed, *purpose))
        seen = Encoded(torch.from_numpy(made.ids), encoded.segments, encoded.lengths).to(self.device)
        positions, targets = (torch.from_numpy(one).to(self.device) for one in (made.positions, made.targets))
        return MaskedBatch(seen, positions, targets)
