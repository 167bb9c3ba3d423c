"""Joint inference for several requests: tasks may be mixed, and each distinct sequence is encoded once.

With per-task adapters the states of a sequence depend on the task, so it is encoded once for each task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.readings import TokenSequence
from weft.inference.memory import EncodedTexts, Outputs
from weft.inference.passes import Pooled, pooled, without_repeats
from weft.inference.words import word_answers
from weft.tasks.network import Network

Values = NDArray[np.float64] | NDArray[np.float32]
Places = NDArray[np.int64]
AskedRows = Sequence[Sequence[TokenSequence]]
Give = Callable[[str, Places, AskedRows], Values]
"""(task, [n, sides] sequence indices, the rows) -> n predictions or vectors"""


@dataclass(frozen=True)
class Ask:
    """Request for the predictions or vectors of some rows."""

    task: str
    rows: AskedRows
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
        rows = [row for i in numbers for row in asks[i].rows]
        given = (vector if vectors else answer)(task, np.concatenate([places[i] for i in numbers]), rows)
        ends = np.cumsum([len(asks[i].rows) for i in numbers])
        starts = ends - [len(asks[i].rows) for i in numbers]
        results.update({i: given[a:b] for i, a, b in zip(numbers, starts, ends, strict=True)})
    return [results[i] for i in range(len(asks))]


@torch.inference_mode()
def together(
    network: Network, asks: Sequence[Ask], device: torch.device, memory: EncodedTexts | None = None
) -> list[Values]:
    """Run the asks with the PyTorch network in eval mode. Tasks of all readings share one packed pass."""
    assert not network.training, "a network that answers does not drop anything out"
    tasks = list(dict.fromkeys(ask.task for ask in asks))
    owners: list[str] | None = None
    if network.shares_states:
        distinct, places = lay_out(asks)
    else:
        distinct, owners, places = lay_out_by_task(asks)
    if memory is None:
        found, tokens = pooled(network, tasks, distinct, device, owners)
    else:
        found, tokens = _recalled(memory, network, tasks, distinct, device, owners)

    def answer(task: str, where: Places, rows: AskedRows) -> Values:
        if task in tokens:
            outputs = [tokens[task][place] for place in where[:, 0].tolist()]
            return word_answers([row[0] for row in rows], outputs, network.task(task).read_words)
        values: Values = network.task(task).read([found[task][side] for side in _columns(where)]).double().cpu().numpy()
        return values

    def vector(task: str, where: Places, _: AskedRows) -> Values:
        values: Values = found[task][_columns(where)[0]].float().cpu().numpy()
        return values

    return share_out(asks, places, answer, vector)


def _recalled(
    memory: EncodedTexts,
    network: Network,
    tasks: list[str],
    sequences: list[TokenSequence],
    device: torch.device,
    owners: list[str] | None,
) -> Pooled:
    """`pooled`, but only the sequences that the memory does not know go through the body."""

    def compute(indices: list[int]) -> Outputs:
        own = None if owners is None else [owners[i] for i in indices]
        found, tokens = pooled(network, tasks, [sequences[i] for i in indices], device, own)
        rows = {name: dict(enumerate(values)) for name, values in found.items()} | tokens
        return {name: {indices[k]: row.cpu().numpy() for k, row in own.items()} for name, own in rows.items()}

    wanted = [tasks if owners is None else [owners[i]] for i in range(len(sequences))]
    result = Pooled({}, {})
    for name, rows in memory.outputs(sequences, wanted, compute).items():
        known = {i: torch.from_numpy(row.copy()).to(device) for i, row in rows.items()}
        if network.task(name).pooling.keeps_tokens:
            result.tokens[name] = known
        else:
            vectors = torch.stack(list(known.values()))
            result.vectors[name] = vectors.new_empty(len(sequences), vectors.shape[1])
            result.vectors[name][torch.tensor(list(known), device=device)] = vectors
    return result


def _columns(where: Places) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in where.T]
