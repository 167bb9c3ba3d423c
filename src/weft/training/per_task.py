"""Per-task gradients on the shared parameters, in a flat buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor, nn

from weft.bodies.lookup import TokenTable, UsedRows
from weft.surgery.base import Surgery
from weft.tasks.network import Network, layer_of
from weft.training.distributed import SOLO, Processes

TABLE_ROWS = 2048
"""rows of the token table whose dot products are computed at a time"""


@dataclass(frozen=True)
class Conflicts:
    """Norms and cosine similarities of the task gradients on the body in one step; loss weights are included."""

    norms: dict[str, float]
    """norm of each task's gradient"""
    cosines: dict[str, float]
    """cosine similarity of each pair, "a|b"; a value below 0 is a gradient conflict"""
    layers: dict[str, dict[str, float]] | None
    """cosine similarities on each part of the body; None if they are not logged"""


class ApartGradients:
    """Per-task gradients of a window: one row per task, with its gradient on every trainable shared parameter.

    Shared parameters are those of the body and of an adapter that all tasks share.

    The rows are in one buffer that is reused in every step. The token table, half of a small body's parameters, has no
    columns in it if it keeps its gradient: for each task only the rows of the tokens in its texts are stored.

    Gradients of heads and of per-task adapters stay in `.grad`, because they are not combined. A head that several
    tasks share gets the sum of their gradients.
    """

    def __init__(
        self, network: Network, factors: Mapping[str, Mapping[int, float]], processes: Processes = SOLO
    ) -> None:
        """`factors`: task -> layer -> factor on the task's gradient on that layer."""
        self.network = network
        self.factors = factors
        self.processes = processes
        self.tasks: list[str] = []
        """tasks collected so far"""
        self.touched: set[str] = set()
        """parameters with a gradient of any task in the window; the others must not decay"""
        self._buffer = torch.zeros(0, 0)
        self._tokens: list[UsedRows] = []

    def reserve(self, tasks: int) -> None:
        """Make room for the rows of this many tasks. Rows that were collected before are lost."""
        width = sum(parameter.numel() for _, parameter in self._columns())
        rows, columns = self._buffer.shape
        if columns != width or rows < tasks:
            self._buffer = torch.zeros(0, 0)  # freed before the larger one is allocated
            self._buffer = next(self.network.parameters()).new_zeros(tasks, width)

    def collect(self, task: str) -> None:
        """Move the gradient of a task's backward pass, summed over processes, from the body to the task's row."""
        self.processes.sum_gradients([parameter for _, parameter in self._columns()])
        row = self._buffer[len(self.tasks)]
        self.tasks.append(task)
        start = 0
        for name, parameter in self._columns():
            piece = row[start : start + parameter.numel()].view_as(parameter)
            start += parameter.numel()
            if parameter.grad is None:
                piece.zero_()
            else:
                self.touched.add(name)
                torch.mul(parameter.grad, self._factor(task, name), out=piece)
                parameter.grad = None
        if self._has_rows():
            self._tokens.append(self._table().take_gradient())

    def combine(self, surgery: Surgery | None) -> None:
        """Combine all rows and store the result as the gradient of the body."""
        weights = torch.ones(len(self.tasks))
        if surgery:
            gramian = self.gramian()
            # non-finite gradients pass unchanged: the step stops the run, or the fp16 scaler skips the step
            weights = surgery(gramian) if torch.isfinite(gramian).all() else weights
        total, *others = self._buffer[: len(self.tasks)]
        total.mul_(weights[0])
        for row, weight in zip(others, weights[1:].tolist(), strict=True):
            total.add_(row, alpha=weight)
        start = 0
        for name, parameter in self._columns():
            end = start + parameter.numel()
            if name in self.touched:
                parameter.grad = total[start:end].view_as(parameter)
            start = end
        for (ids, rows), weight in zip(self._tokens, weights.tolist(), strict=False):
            if len(ids):
                self._table().add_gradient(ids, rows * weight)

    def forget(self) -> None:
        """Clear the rows before the next window."""
        self.tasks.clear()
        self._tokens.clear()
        self.touched.clear()

    def gramian(self) -> Tensor:
        """[m, m] dot products of the tasks' gradients."""
        return self._products(slice(None)) + self._token_products()

    def conflicts(self, *, by_layer: bool, scale: float = 1.0) -> Conflicts:
        """Compute norms and cosine similarities; `scale` is the loss scale of the gradients."""
        gramian = self.gramian()
        norms = (gramian.diagonal().sqrt() / scale).tolist()
        layers = None
        if by_layer:
            by_part = {part: self._products(where) for part, where in self._parts().items()}
            if self._tokens:
                by_part["embeddings"] = by_part["embeddings"] + self._token_products()
            layers = {part: cosines(products, self.tasks) for part, products in by_part.items()}
        return Conflicts(dict(zip(self.tasks, norms, strict=True)), cosines(gramian, self.tasks), layers)

    def _products(self, columns: slice) -> Tensor:
        rows = self._buffer[: len(self.tasks), columns]
        return rows @ rows.T

    def _token_products(self) -> Tensor:
        """Dot products on the token table, over the rows that any task uses; all other rows are zero."""
        m = len(self.tasks)
        if not self._tokens:
            return self._buffer.new_zeros(m, m)
        union, places = torch.cat([ids for ids, _ in self._tokens]).unique(return_inverse=True)
        used = places.split([len(ids) for ids, _ in self._tokens])
        products = self._buffer.new_zeros(m, m)
        # part by part: both the number of tasks and that of their tokens would multiply the memory of one matrix
        for start in range(0, len(union), TABLE_ROWS):
            together = self._buffer.new_zeros(m, min(TABLE_ROWS, len(union) - start), self._table().embedding_dim)
            for own, (_, rows), place in zip(together, self._tokens, used, strict=True):
                here = (place >= start) & (place < start + TABLE_ROWS)
                own[place[here] - start] = rows[here]
            flat = together.flatten(1)
            products += flat @ flat.T
        return products

    def _table(self) -> TokenTable:
        return self.network.body.embeddings.tokens

    def _has_rows(self) -> bool:
        return self._table().keeps_gradient and self._table().weight.requires_grad

    def _columns(self) -> list[tuple[str, nn.Parameter]]:
        """Return the trainable shared parameters that have columns in the buffer, part by part."""
        apart = self._table().weight if self._has_rows() else None
        found = [(name, p) for name, p in self.network.shared_parameters() if p.requires_grad and p is not apart]
        order = {part: number for number, part in enumerate(dict.fromkeys(_part(name) for name, _ in found))}
        return sorted(found, key=lambda column: order[_part(column[0])])

    def _parts(self) -> dict[str, slice]:
        """embeddings, layers.0, layers.1, ..., pooler -> their columns; a layer includes its adapter"""
        parts: dict[str, slice] = {}
        start = 0
        for name, parameter in self._columns():
            part = _part(name)
            end = start + parameter.numel()
            parts[part] = slice(parts[part].start if part in parts else start, end)
            start = end
        return parts

    def _factor(self, task: str, name: str) -> float:
        layer = layer_of(name)
        return 1.0 if layer is None else self.factors.get(task, {}).get(layer, 1.0)


def _part(name: str) -> str:
    """Return the part of the body that a shared parameter belongs to; `adapter` for modules that its layers share."""
    layer = layer_of(name)
    return f"layers.{layer}" if layer is not None else name.split(".")[1 if name.startswith("body.") else 0]


def cosines(gramian: Tensor, tasks: Sequence[str]) -> dict[str, float]:
    """Cosine similarity `g_i · g_j / |g_i| |g_j|` for each pair of tasks; 0 if a gradient is zero."""
    found = {}
    for i, j in combinations(range(len(tasks)), 2):
        scale = float((gramian[i, i] * gramian[j, j]).sqrt())
        found[f"{tasks[i]}|{tasks[j]}"] = float(gramian[i, j]) / scale if scale > 0 else 0.0
    return found
