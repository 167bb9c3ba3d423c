"""R-Drop: consistency of outputs under different dropout masks."""

from typing import Literal

from pydantic import Field
from torch import Tensor

from weft.regularizers.base import Divergence, Regularizer, RegularizerOptions, Run


class RDrop(Regularizer):
    """`alpha / 4 l_s(f'(x), f(x))`, f and f' the same layers with two dropout masks on the same embeddings.

    Liang et al., "R-Drop: Regularized Dropout for Neural Networks", 2021. Their loss is `CE_1 + CE_2 + alpha / 2 l_s`,
    with the cross-entropy of both passes and l_s the symmetrized KL divergence. Here only the first pass has a
    cross-entropy, so the term is halved too: alpha has the same meaning as in the paper.
    """

    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: Divergence) -> Tensor:
        return self.weight / 4 * divergence(run(embedded, 1), output)


class RDropConfig(RegularizerOptions):
    name: Literal["r-drop"] = "r-drop"
    weight: float = Field(default=1.0, gt=0)
    """Weight alpha of the term."""

    def build(self) -> RDrop:
        return RDrop(self.weight)
