"""The contract of a loss."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions
from weft.nn.heads.base import Bounds
from weft.testing.configs import check_config, require, require_close

CELLS: tuple[tuple[Labels, tuple[str, ...]], ...] = (
    (Labels(KINDS["classification"], ("no", "yes")), ("no", "yes", "yes", "no", "yes")),
    (Labels(KINDS["classification"], ("a", "b", "c", "d")), ("a", "c", "d", "b", "a")),
    (Labels(KINDS["ordinal"], ("low", "middle", "high")), ("high", "low", "middle", "high", "low")),
    (Labels(KINDS["multilabel"], ("a", "b", "c")), ("a", "", "b,c", "a,b,c", "c")),
    (Labels(KINDS["tags"], ("O", "B-x", "I-x")), ('["O"]', '["B-x"]', '["I-x"]', '["O"]', '["B-x"]')),
    (Labels(KINDS["regression"], scaled=True), ("0", "1", "0.25", "0.5", "0.75")),
    (Labels(KINDS["matches"]), ("0 1", "2 3", "4 5", "0 6", "7 1")),
)
"""Labels of every kind, each with the label cells of some rows."""
BOUNDS: tuple[Bounds, ...] = (None, (-1.0, 1.0), (0.0, 1.0))
ROWS = len(CELLS[0][1])
WIDTH = 4
READINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda output: output.softmax(dim=1),
    "sigmoid": torch.sigmoid,
    "identity": lambda output: output[:, 0],
}
"""Activation -> the function of the logits that `read` must equal."""


def check_loss(config: LossOptions) -> None:
    """Check shape, finiteness, gradients and `read` of a loss.

    For every kind of labels, the config must build a loss or raise a UserError that names the key.
    """
    check_config(config)
    built = 0
    for (labels, cells), bounds in product(CELLS, BOUNDS):
        try:
            loss = config.build(labels, "task", bounds)
        except UserError as error:
            require(str(error).startswith("tasks.task.loss: "), f"the error must name the key tasks.TASK.loss: {error}")
            continue
        built += 1
        _check_built(loss, labels, cells, bounds)
    require(built > 0, f"{type(config).__name__}: rejects every kind of labels")


def _check_built(loss: Loss, labels: Labels, cells: Sequence[str], bounds: Bounds) -> None:
    where = f"{type(loss).__name__} on {labels.kind.name} with {len(labels.names)} names"
    low, high = bounds or (-3.0, 3.0)
    generator = torch.Generator().manual_seed(0)
    shape = (ROWS, 2, WIDTH) if loss.reads_vectors else (ROWS, loss.outputs)
    drawn = low + (high - low) * torch.rand(shape, generator=generator)
    output = (F.normalize(drawn, dim=2) if loss.reads_vectors else drawn).requires_grad_()
    found: Any = [labels.kind.target(cell, labels) for cell in cells]
    targets: NDArray[Any] = np.array(labels.kind.flat(found), dtype=labels.kind.target_type)
    loss.observe(targets)
    losses = loss(output, torch.from_numpy(targets))
    require(losses.shape == (ROWS,), f"{where}: returns losses of shape {list(losses.shape)}, expected one per row")
    require(torch.isfinite(losses).all(), f"{where}: returns losses that are not finite: {losses.tolist()}")
    losses.sum().backward()
    require(
        output.grad is not None and output.grad.abs().sum() > 0,
        f"{where}: the gradient of the output is missing or zero",
    )
    _check_reading(loss, labels, output.detach(), where)
    one_each = loss.outputs == max(1, len(labels.names))
    if bounds is None and loss.activation is not None and one_each:
        expected = READINGS[loss.activation](output.detach())
        require_close(loss.read(output.detach()), expected, f"{where}: `read` is not {loss.activation}")


def _check_reading(loss: Loss, labels: Labels, output: Tensor, where: str) -> None:
    reading = loss.read(output)
    shape = (ROWS, len(labels.names)) if labels.names else (ROWS,)
    require(reading.shape == shape, f"{where}: `read` returns shape {list(reading.shape)}, expected {list(shape)}")
    if labels.names:
        require(((reading >= 0) & (reading <= 1)).all(), f"{where}: `read` returns probabilities outside of 0..1")
        if labels.kind.has_one_class:
            require_close(reading.sum(1), torch.ones(ROWS), f"{where}: the probabilities of a row do not sum to 1")
