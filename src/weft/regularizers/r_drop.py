"""Outputs that stay the same under another dropout mask."""

from typing import Literal

from pydantic import Field
from torch import Tensor

from weft.regularizers.base import Divergence, Regularizer, Run
from weft.variants import Config


class RDrop(Regularizer):
    """`alpha / 2 l_s(f'(x), f(x))`, f and f' the same layers with two dropout masks on the same embeddings.

    Liang et al., "R-Drop: Regularized Dropout for Neural Networks", 2021. l_s is the symmetrized KL, of which they take
    half. Their loss also counts the labels' term in both passes; here it counts in the first.
    """

    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: Divergence) -> Tensor:
        return self.weight / 2 * divergence(run(embedded, 1), output)


class RDropConfig(Config):
    name: Literal["r-drop"] = "r-drop"
    weight: float = Field(default=1.0, gt=0)
    """alpha"""

    def build(self) -> RDrop:
        return RDrop(self.weight)
