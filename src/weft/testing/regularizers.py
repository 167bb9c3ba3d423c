"""The contract of a regularizer."""

import torch
from torch import Tensor

from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.regularizers.base import Divergence, RegularizerOptions
from weft.testing.configs import check_config, require

ROWS, TOKENS, WIDTH = 2, 2, 5
CASES = (
    (Labels(KINDS["classification"], ("a", "b", "c")), 3, lambda output: output.softmax(dim=1)),
    (Labels(KINDS["multilabel"], ("a", "b", "c")), 3, torch.sigmoid),
    (Labels(KINDS["regression"]), 1, lambda output: output[:, 0]),
)


def check_regularizer(config: RegularizerOptions) -> None:
    """Check that a regularizer returns one finite term per row, with a gradient, reproducible from torch's seed."""
    check_config(config)
    for labels, outputs, read in CASES:
        generator = torch.Generator().manual_seed(1)
        embedded = torch.randn(ROWS * TOKENS, WIDTH, dtype=torch.float64, generator=generator)
        weights = torch.randn(WIDTH, outputs, dtype=torch.float64, generator=generator).requires_grad_()
        mask = torch.rand(ROWS * TOKENS, WIDTH, dtype=torch.float64, generator=generator)

        def run(states: Tensor, draw: int, weights: Tensor = weights, mask: Tensor = mask) -> Tensor:
            """Run a small model with two tokens per row; draws other than 0 apply a "dropout" mask."""
            kept = states if draw == 0 else states * mask
            return torch.tanh(kept.view(ROWS, TOKENS, WIDTH) @ weights).sum(dim=1)

        regularizer = config.build()
        where = f"{type(regularizer).__name__} on {labels.kind.name}"
        terms = []
        for _ in range(2):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(9)
                terms.append(regularizer(run, embedded, run(embedded, 0), Divergence(labels, read)))
        term = terms[0]
        require(term.shape == (ROWS,), f"{where}: returns shape {list(term.shape)}, expected one term per row")
        require(torch.isfinite(term).all(), f"{where}: returns terms that are not finite: {term.tolist()}")
        require(torch.equal(terms[0], terms[1]), f"{where}: equal seeds return different terms")
        (gradient,) = torch.autograd.grad(term.sum(), weights, allow_unused=True)
        require(
            gradient is not None and gradient.abs().sum() > 0, f"{where}: the gradient of the model is missing or zero"
        )
