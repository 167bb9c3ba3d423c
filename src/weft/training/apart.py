"""Gradients of the shared body, one task's at a time, in flat buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor, nn

from weft.surgery.base import Surgery
from weft.tasks.network import Network
from weft.training.distributed import SOLO, Processes


@dataclass(frozen=True)
class Conflicts:
    """How the tasks' gradients on the body lie to each other in one step; weights of the losses are in them."""

    norms: dict[str, float]
    cosines: dict[str, float]
    """for each pair, "a|b": below 0 the two tasks pull the body apart"""
    layers: dict[str, dict[str, float]] | None
    """the cosines on each part of the body by itself, if asked for"""


class ApartGradients:
    """One row of numbers for each task of a window: its gradient on every body parameter that trains.

    The heads keep their gradients where autograd puts them: no other task has a say in those. A parameter outside
    the body that several tasks share gets the plain sum of their gradients.
    """

    def __init__(
        self, network: Network, factors: Mapping[str, Mapping[int, float]], processes: Processes = SOLO
    ) -> None:
        """`factors`: task -> layer -> what its gradient on that layer is multiplied by."""
        self.network = network
        self.factors = factors
        self.processes = processes
        self.rows: dict[str, Tensor] = {}
        self.touched: set[str] = set()
        """parameters that some task of the window has a gradient on; the others must not even decay"""

    def collect(self, task: str) -> None:
        """Move what a task's backward pass left on the body, in all processes, into a row of its own."""
        shared = self._shared()
        self.processes.sum_gradients([parameter for _, parameter in shared])
        pieces = []
        for name, parameter in shared:
            if parameter.grad is None:
                pieces.append(parameter.new_zeros(parameter.numel()))
                continue
            self.touched.add(name)
            pieces.append(parameter.grad.flatten() * self._factor(task, name))
            parameter.grad = None
        self.rows[task] = torch.cat(pieces) if pieces else torch.zeros(0)

    def combine(self, surgery: Surgery | None) -> None:
        """Leave the combination of all rows on the body."""
        weights = surgery(self.gramian()) if surgery else None
        total = torch.zeros_like(next(iter(self.rows.values())))
        for i, row in enumerate(self.rows.values()):
            total.add_(row if weights is None else row * weights[i])
        start = 0
        for name, parameter in self._shared():
            end = start + parameter.numel()
            if name in self.touched:
                parameter.grad = total[start:end].view_as(parameter)
            start = end

    def forget(self) -> None:
        """Before the next window."""
        self.rows.clear()
        self.touched.clear()

    def gramian(self, columns: slice = slice(None)) -> Tensor:
        """[m, m] dot products of the rows, or of some columns of them."""
        rows = [row[columns] for row in self.rows.values()]
        gramian = rows[0].new_zeros(len(rows), len(rows))
        for i, one in enumerate(rows):
            for j, other in enumerate(rows[: i + 1]):
                gramian[i, j] = gramian[j, i] = one @ other
        return gramian

    def conflicts(self, *, by_layer: bool) -> Conflicts:
        tasks = list(self.rows)
        gramian = self.gramian()
        norms = gramian.diagonal().sqrt().tolist()
        layers = None
        if by_layer:
            layers = {part: cosines(self.gramian(where), tasks) for part, where in self._parts().items()}
        return Conflicts(dict(zip(tasks, norms, strict=True)), cosines(gramian, tasks), layers)

    def _shared(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, p) for name, p in self.network.body.named_parameters() if p.requires_grad]

    def _parts(self) -> dict[str, slice]:
        """embeddings, layers.0, layers.1, ..., pooler -> their columns"""
        parts: dict[str, slice] = {}
        start = 0
        for name, parameter in self._shared():
            part = ".".join(name.split(".")[:2]) if name.startswith("layers.") else name.split(".")[0]
            end = start + parameter.numel()
            parts[part] = slice(parts[part].start if part in parts else start, end)
            start = end
        return parts

    def _factor(self, task: str, name: str) -> float:
        if not name.startswith("layers."):
            return 1.0
        return self.factors.get(task, {}).get(int(name.split(".")[1]), 1.0)


def cosines(gramian: Tensor, tasks: Sequence[str]) -> dict[str, float]:
    """`g_i · g_j / |g_i| |g_j|` for each pair of tasks; 0 where a gradient vanishes."""
    found = {}
    for i, j in combinations(range(len(tasks)), 2):
        scale = float((gramian[i, i] * gramian[j, j]).sqrt())
        found[f"{tasks[i]}|{tasks[j]}"] = float(gramian[i, j]) / scale if scale > 0 else 0.0
    return found
