"""Gradients of the shared body, one task's at a time, in flat buffers."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from weft.tasks.network import Network


class ApartGradients:
    """One row of numbers for each task of a window: its gradient on every body parameter that trains.

    The heads keep their gradients where autograd puts them: no other task has a say in those. A parameter outside
    the body that several tasks share gets the plain sum of their gradients.
    """

    def __init__(self, network: Network, factors: Mapping[str, Mapping[int, float]]) -> None:
        """`factors`: task -> layer -> what its gradient on that layer is multiplied by."""
        self.network = network
        self.factors = factors
        self.rows: list[Tensor] = []
        self.touched: set[str] = set()
        """parameters that some task of the window has a gradient on; the others must not even decay"""

    def collect(self, task: str) -> None:
        """Move what a task's backward pass left on the body into a row of its own."""
        pieces = []
        for name, parameter in self._shared():
            if parameter.grad is None:
                pieces.append(parameter.new_zeros(parameter.numel()))
                continue
            self.touched.add(name)
            pieces.append(parameter.grad.flatten() * self._factor(task, name))
            parameter.grad = None
        self.rows.append(torch.cat(pieces) if pieces else torch.zeros(0))

    def combine(self) -> None:
        """Leave the sum of all rows on the body, and forget them."""
        total = torch.stack(self.rows).sum(dim=0)
        start = 0
        for name, parameter in self._shared():
            end = start + parameter.numel()
            if name in self.touched:
                parameter.grad = total[start:end].view_as(parameter)
            start = end
        self.rows.clear()
        self.touched.clear()

    def _shared(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, p) for name, p in self.network.body.named_parameters() if p.requires_grad]

    def _factor(self, task: str, name: str) -> float:
        if not name.startswith("layers."):
            return 1.0
        return self.factors.get(task, {}).get(int(name.split(".")[1]), 1.0)
