"""Joint inference for several requests: tasks may be mixed, and each distinct sequence is encoded once.

With per-task adapters the states of a sequence depend on the task, so it is encoded once for each task.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.readings import TokenSequence, pack
from weft.foundation.values import Encoded
from weft.inference.passes import by_length, without_repeats
from weft.tasks.network import Network, split_layers, tokens_read

Values = NDArray[np.float64] | NDArray[np.float32]
Places = NDArray[np.int64]
Give = Callable[[str, Places], Values]
"""(task, [n, sides] sequence indices) -> n predictions or vectors"""


@dataclass(frozen=True)
class Ask:
    """Request for the predictions or vectors of some rows."""

    task: str
    rows: Sequence[Sequence[TokenSequence]]
    """at least one row, each with one or two sequences"""
    vectors: bool = False
    """whether to return pooled vectors instead of predictions; each row must have one sequence"""


def lay_out(asks: Sequence[Ask]) -> tuple[list[TokenSequence], list[Places]]:
    """Return the distinct sequences and, for each ask, [rows, sides] the indices of its sequences among them."""
    distinct, places = without_repeats([sequence for ask in asks for row in ask.rows for sequence in row])
    return distinct, _by_ask(asks, places)


def lay_out_by_task(asks: Sequence[Ask]) -> tuple[list[TokenSequence], list[str], list[Places]]:
    """Like `lay_out`, for tasks with adapters of their own: equal sequences of different tasks stay apart.

    Also return the task of each sequence.
    """
    sequences: list[TokenSequence] = []
    tasks: list[str] = []
    places: dict[int, Places] = {}
    for task in dict.fromkeys(ask.task for ask in asks):
        own = [i for i, ask in enumerate(asks) if ask.task == task]
        distinct, found = lay_out([asks[i] for i in own])
        places.update(zip(own, [piece + len(sequences) for piece in found], strict=True))
        sequences += distinct
        tasks += [task] * len(distinct)
    return sequences, tasks, [places[i] for i in range(len(asks))]


def _by_ask(asks: Sequence[Ask], places: Sequence[int]) -> list[Places]:
    shapes = [(len(ask.rows), len(ask.rows[0])) for ask in asks]
    ends = np.cumsum([rows * sides for rows, sides in shapes])
    pieces = np.split(np.array(places, dtype=np.int64), ends[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def share_out(asks: Sequence[Ask], places: Sequence[Places], answer: Give, vector: Give) -> list[Values]:
    """Make one call per task and output type for all asks, and return to each ask the values of its rows."""
    results: dict[int, Values] = {}
    for task, vectors in dict.fromkeys((ask.task, ask.vectors) for ask in asks):
        numbers = [i for i, ask in enumerate(asks) if (ask.task, ask.vectors) == (task, vectors)]
        given = (vector if vectors else answer)(task, np.concatenate([places[i] for i in numbers]))
        ends = np.cumsum([len(asks[i].rows) for i in numbers])
        starts = ends - [len(asks[i].rows) for i in numbers]
        results.update({i: given[a:b] for i, a, b in zip(numbers, starts, ends, strict=True)})
    return [results[i] for i in range(len(asks))]


@torch.inference_mode()
def together(network: Network, asks: Sequence[Ask], device: torch.device) -> list[Values]:
    """Run the asks with the PyTorch network in eval mode. Tasks of all readings share one packed pass."""
    assert not network.training, "a network that answers does not drop anything out"
    tasks = list(dict.fromkeys(ask.task for ask in asks))
    if network.shares_states:
        distinct, places = lay_out(asks)
        found = _vectors(network, tasks, distinct, device)
    else:
        distinct, owners, places = lay_out_by_task(asks)
        found = _own_vectors(network, distinct, owners, device)

    def answer(task: str, where: Places) -> Values:
        values: Values = network.task(task).read([found[task][side] for side in _columns(where)]).double().cpu().numpy()
        return values

    def vector(task: str, where: Places) -> Values:
        values: Values = found[task][_columns(where)[0]].float().cpu().numpy()
        return values

    return share_out(asks, places, answer, vector)


def _columns(where: Places) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in where.T]


def _vectors(
    network: Network, tasks: Collection[str], sequences: Sequence[TokenSequence], device: torch.device
) -> dict[str, Tensor]:
    """Return [n, width] vectors for each task, from its own pooling."""
    first_only = all(network.task(name).pooling.first_only for name in tasks)
    widths = {name: network.task(name).pooling.width for name in tasks}
    dtype = network.body.embeddings.tokens.weight.dtype
    found = {name: torch.empty(len(sequences), width, dtype=dtype, device=device) for name, width in widths.items()}
    any_task = next(iter(tasks))  # all tasks have the same adapter, or none
    for group in by_length(sequences):
        encoded = pack([sequences[i] for i in group]).to(device)
        hidden = network.read(encoded, [(any_task, len(encoded.ids))], tokens_read([encoded], [first_only]))
        for name, vectors in found.items():
            vectors[torch.tensor(group, device=device)] = network.task(name).vectors(hidden, encoded)
    return found


def _own_vectors(
    network: Network, sequences: Sequence[TokenSequence], owners: Sequence[str], device: torch.device
) -> dict[str, Tensor]:
    """Like `_vectors`, where each sequence belongs to one task; rows of other tasks' sequences stay empty.

    Sequences of all tasks share a pass. Those of one task are adjacent in it, so that its adapter runs on a slice.
    """
    found: dict[str, Tensor] = {}
    for group in by_length(sequences):
        by_task: dict[str, list[int]] = {}
        for i in group:
            by_task.setdefault(owners[i], []).append(i)
        texts = [pack([sequences[i] for i in own]).to(device) for own in by_task.values()]
        read = tokens_read(texts, [network.task(name).pooling.first_only for name in by_task])
        spans = [(name, len(text.ids)) for name, text in zip(by_task, texts, strict=True)]
        pieces = split_layers(network.read(Encoded.join(texts), spans, read), texts)
        for (name, own), text, hidden in zip(by_task.items(), texts, pieces, strict=True):
            pooled = network.task(name).vectors(hidden, text)
            vectors = found.setdefault(name, pooled.new_empty(len(sequences), pooled.shape[1]))
            vectors[torch.tensor(own, device=device)] = pooled
    return found
