"""CoSENT: a pair with a higher label gets a higher cosine similarity."""

from typing import Literal

from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.graded import GradedOptions, GradedPairs, require_graded
from weft.nn.heads.base import Bounds


class CoSent(GradedPairs):
    """The order of the cosine similarities. Su, "CoSENT: consistent sentence embedding", 2022."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return self.in_order(output[:, 0], target)

    def read(self, output: Tensor) -> Tensor:
        return self.in_range(output[:, 0])


class CoSentConfig(GradedOptions):
    name: Literal["cosent"] = "cosent"

    def build(self, labels: Labels, task: str, bounds: Bounds) -> CoSent:
        require_graded(self.name, labels, task, bounds, 'a cosine (head = "cosine")')
        return CoSent(self.scale, labels, gather=self.gather)
