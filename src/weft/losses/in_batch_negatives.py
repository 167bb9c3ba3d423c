"""In-batch negatives: the matches of other rows are the negatives of a row."""

from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from weft.kinds.labels import Labels
from weft.kinds.truth import Targets
from weft.losses.base import Loss, LossOptions, refuse, refuse_bounds
from weft.nn.heads.base import Bounds


class InBatchNegatives(Loss):
    """`-log exp(s cos(a_i, p_i)) / sum_j exp(s cos(a_i, c_j))` over the candidates c of the forward pass.

    The candidates are the second texts and the hard negatives of all rows (Henderson et al., "Efficient natural
    language response suggestion", 2017; also InfoNCE with temperature 1 / s). A candidate is left out if it is the
    row's own first or second text, or another known match of its first text. `symmetric` adds the same loss from each
    second text to the first texts and takes the mean.

    A target has the numbers of the row's texts, which are equal for equal texts.
    """

    activation = None  # the prediction is a cosine
    reads_vectors: ClassVar[bool] = True
    sees_batch: ClassVar[bool] = True

    def __init__(self, scale: float, *, symmetric: bool, gather: bool) -> None:
        super().__init__(1)
        self.scale = scale
        self.symmetric = symmetric
        self.gathers = gather
        self.known: Tensor
        """[m] sorted codes of all matches of the train rows; empty before `observe`"""
        self.register_buffer("known", torch.empty(0, dtype=torch.int64), persistent=False)

    def observe(self, targets: Targets) -> None:
        numbers = torch.from_numpy(np.asarray(targets, dtype=np.int64))
        self.known = _codes(numbers[:, 0], numbers[:, 1]).unique().to(self.known.device)

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        texts = output.shape[1]
        numbers = target[:, :texts]
        first, candidates = output[:, 0], output[:, 1:].transpose(0, 1).flatten(0, 1)  # second texts, then negatives
        with torch.autocast(output.device.type, enabled=False):  # a factor of 20 is too much for half precision
            cosines = first @ candidates.T
        matches = self._matches(numbers, numbers[:, 1:].T.flatten())
        losses = self._of_rows(cosines, matches)
        if self.symmetric:
            rows = len(output)
            losses = (losses + self._of_rows(cosines[:, :rows].T, matches[:, :rows].T)) / 2
        return losses

    def _of_rows(self, cosines: Tensor, matches: Tensor) -> Tensor:
        own = torch.eye(*cosines.shape, dtype=torch.bool, device=cosines.device)
        scores = (self.scale * cosines).masked_fill(matches & ~own, -torch.inf)
        return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device), reduction="none")

    def _matches(self, numbers: Tensor, candidates: Tensor) -> Tensor:
        """[n, candidates] whether a candidate is no negative of a row: an equal text, or a known match."""
        first, second = numbers[:, :1], numbers[:, 1:2]
        # outside of training, texts have other numbers, and only the matches of these rows are known
        known = self.known if self.training and len(self.known) else _codes(first, second).unique()
        codes = _codes(first, candidates)
        nearest = known[torch.searchsorted(known, codes).clamp(max=len(known) - 1)]
        return (candidates == first) | (candidates == second) | (nearest == codes)

    def read(self, output: Tensor) -> Tensor:
        return (output[:, 0] * output[:, 1]).sum(dim=1)


def _codes(first: Tensor, second: Tensor) -> Tensor:
    """Return one number for each pair of text numbers, which are below 2^31."""
    return first * 2**31 + second


class InBatchNegativesConfig(LossOptions):
    name: Literal["in-batch-negatives"] = "in-batch-negatives"
    scale: float = Field(default=20.0, gt=0)
    """Factor on the cosine similarities; the inverse of the temperature."""
    symmetric: bool = False
    """Whether each second text must also find its first text among those of the batch."""
    gather: bool = False
    """Whether the rows of all processes form one batch. Defaults to negatives of the same process only."""

    def build(self, labels: Labels, task: str, bounds: Bounds) -> InBatchNegatives:
        if not labels.kind.ranks:
            raise refuse(self.name, labels, task, "matches")
        if bounds != (-1.0, 1.0):
            raise refuse_bounds(self.name, bounds, task, 'unit vectors (head = "vectors")')
        return InBatchNegatives(self.scale, symmetric=self.symmetric, gather=self.gather)
