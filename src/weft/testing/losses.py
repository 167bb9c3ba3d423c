"""The contract of a loss."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from weft.data.labels import Labels
from weft.foundation.errors import UserError
from weft.losses.base import Loss, LossOptions
from weft.nn.heads.base import Bounds
from weft.testing.configs import check_config, require, require_close

KINDS = (
    Labels("classification", ("no", "yes")),
    Labels("classification", ("a", "b", "c", "d")),
    Labels("ordinal", ("low", "middle", "high")),
    Labels("multilabel", ("a", "b", "c")),
    Labels("regression", scaled=True),
)
BOUNDS: tuple[Bounds, ...] = (None, (-1.0, 1.0), (0.0, 1.0))
ROWS = 5
READINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda output: output.softmax(dim=1),
    "sigmoid": torch.sigmoid,
    "identity": lambda output: output[:, 0],
}
"""what an `activation` says of `read` on logits"""


def check_loss(config: LossOptions) -> None:
    """For every kind of labels the loss is built or rejects them by name; a built one is finite, trains, and reads."""
    check_config(config)
    built = 0
    for labels, bounds in product(KINDS, BOUNDS):
        try:
            loss = config.build(labels, "task", bounds)
        except UserError as error:
            require(
                str(error).startswith("tasks.task.loss: "), f"a rejection must name the key tasks.TASK.loss: {error}"
            )
            continue
        built += 1
        _check_built(loss, labels, bounds)
    require(built > 0, f"{type(config).__name__}: rejects every kind of labels")


def _check_built(loss: Loss, labels: Labels, bounds: Bounds) -> None:
    where = f"{type(loss).__name__} on {labels.kind} with {len(labels.names)} names"
    low, high = bounds or (-3.0, 3.0)
    generator = torch.Generator().manual_seed(0)
    output = (low + (high - low) * torch.rand(ROWS, loss.outputs, generator=generator)).requires_grad_()
    losses = loss(output, _targets(labels, generator))
    require(losses.shape == (ROWS,), f"{where}: gives losses of shape {list(losses.shape)}, expected one for each row")
    require(torch.isfinite(losses).all(), f"{where}: gives losses that are not finite: {losses.tolist()}")
    losses.sum().backward()
    require(output.grad is not None and output.grad.abs().sum() > 0, f"{where}: has no gradient on the output")
    _check_reading(loss, labels, output.detach(), where)
    one_each = loss.outputs == (1 if labels.is_numeric else len(labels.names))
    if bounds is None and loss.activation is not None and one_each:
        expected = READINGS[loss.activation](output.detach())
        require_close(loss.read(output.detach()), expected, f"{where}: `read` is not {loss.activation}")


def _targets(labels: Labels, generator: torch.Generator) -> Tensor:
    if labels.kind == "multilabel":
        return torch.randint(2, (ROWS, len(labels.names)), generator=generator).double()
    if labels.is_numeric:
        return torch.rand(ROWS, generator=generator)
    return torch.randint(len(labels.names), (ROWS,), generator=generator)


def _check_reading(loss: Loss, labels: Labels, output: Tensor, where: str) -> None:
    reading = loss.read(output)
    shape = (ROWS,) if labels.is_numeric else (ROWS, len(labels.names))
    require(reading.shape == shape, f"{where}: reads shape {list(reading.shape)}, expected {list(shape)}")
    if not labels.is_numeric:
        require(((reading >= 0) & (reading <= 1)).all(), f"{where}: reads probabilities outside of 0..1")
        if labels.kind != "multilabel":
            require_close(reading.sum(1), torch.ones(ROWS), f"{where}: the probabilities of a row do not sum to 1")
