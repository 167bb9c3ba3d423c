"""AnglE: a pair with a higher label gets a smaller angle in complex space."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.graded import GradedOptions, GradedPairs, require_graded
from weft.nn.heads.base import Bounds


class Angle(GradedPairs):
    """The order of angle similarities. Li and Li, "AnglE-optimized text embeddings", 2023.

    Each vector is read as complex numbers: its first half are the real parts, its second half the imaginary parts. With
    unit vectors `a + ib` and `c + id`, the similarity is `|sum (ac + bd) + (bc - ad)|`, whose gradient does not vanish
    where the cosine saturates. The paper adds CoSENT and in-batch negatives; this is the angle objective alone.
    """

    reads_vectors: ClassVar[bool] = True

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        even = F.pad(output, (0, output.shape[2] % 2))
        (a, b), (c, d) = (even[:, text].chunk(2, dim=1) for text in (0, 1))
        similarity = (a * c + b * d + b * c - a * d).sum(dim=1).abs()
        return self.in_order(similarity, target)

    def read(self, output: Tensor) -> Tensor:
        return self.in_range((output[:, 0] * output[:, 1]).sum(dim=1))


class AngleConfig(GradedOptions):
    name: Literal["angle"] = "angle"

    def build(self, labels: Labels, task: str, bounds: Bounds) -> Angle:
        require_graded(self.name, labels, task, bounds, 'unit vectors (head = "vectors")')
        return Angle(self.scale, labels, gather=self.gather)
