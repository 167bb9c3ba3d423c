"""Runs a network over many rows without training it: long batches, no dropout, every text once."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.readings import TokenSequence, pack
from weft.tasks.network import Network
from weft.tasks.task import Task

TOKENS = 4096
"""tokens in one pass: large enough to keep the cores busy, small enough to stay in memory"""


def by_length(sequences: Sequence[TokenSequence], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Indices of all sequences in groups of at most `tokens` tokens, neighbours in length together."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i][0]))
    group: list[int] = []
    total = 0
    for i in order:
        length = len(sequences[i][0])
        if group and total + length > tokens:
            yield group
            group, total = [], 0
        group.append(i)
        total += length
    if group:
        yield group


def without_repeats(sequences: Sequence[TokenSequence]) -> tuple[list[TokenSequence], list[int]]:
    """Each different sequence once, and for every given one where it stands among them."""
    numbers: dict[tuple[bytes, int], int] = {}
    distinct: list[TokenSequence] = []
    places = []
    for ids, of_second in sequences:
        key = (ids.tobytes(), of_second)
        if key not in numbers:
            numbers[key] = len(distinct)
            distinct.append((ids, of_second))
        places.append(numbers[key])
    return distinct, places


@torch.no_grad()
def vectors(network: Network, task: Task, sequences: Sequence[TokenSequence], device: torch.device) -> Tensor:
    """[n, width] pooled vectors in the order of `sequences`; equal sequences are encoded once."""
    distinct, places = without_repeats(sequences)
    found: Tensor | None = None
    for group in by_length(distinct):
        encoded = pack([distinct[i] for i in group]).to(device)
        pooled = task.vectors(network.body(encoded), encoded)
        if found is None:
            found = pooled.new_empty(len(distinct), pooled.shape[1])
        found[torch.tensor(group, device=device)] = pooled
    assert found is not None, "callers never ask for no rows"
    return found[torch.tensor(places, device=device)]


@torch.no_grad()
def answers(
    network: Network, name: str, rows: Sequence[Sequence[TokenSequence]], device: torch.device
) -> NDArray[np.float64]:
    """[n, classes] probabilities or [n] numbers (on the scale of training) for rows of one or two sequences."""
    task = network.task(name)
    was_training = network.training
    network.eval()
    try:
        sides = len(rows[0])
        flat = [row[side] for side in range(sides) for row in rows]
        parts = list(vectors(network, task, flat, device).split(len(rows)))
        result: NDArray[np.float64] = task.read(parts).double().cpu().numpy()
        return result
    finally:
        network.train(was_training)
