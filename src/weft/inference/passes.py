"""Forward passes over many rows without training: large batches, no dropout, each distinct text encoded once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence, pack
from weft.evaluation.plane import Axes, Plane, principal_axes
from weft.inference.words import placed, seen_words, word_answers, word_outputs
from weft.tasks.network import Network, tokens_read
from weft.tasks.task import Task

TOKENS = 2048
"""tokens per pass: enough to keep the cores busy, few enough that the activations of a layer fit in the cache"""


def by_length(sequences: Sequence[TokenSequence], tokens: int = TOKENS) -> Iterator[list[int]]:
    """Yield the indices of all sequences, sorted by length, in groups of at most `tokens` tokens.

    A longer sequence forms its own group.
    """
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i].ids))
    group: list[int] = []
    total = 0
    for i in order:
        length = len(sequences[i].ids)
        if group and total + length > tokens:
            yield group
            group, total = [], 0
        group.append(i)
        total += length
    if group:
        yield group


def without_repeats(sequences: Sequence[TokenSequence]) -> tuple[list[TokenSequence], list[int]]:
    """Deduplicate sequences. Return the distinct ones and the index of every given sequence among them."""
    numbers: dict[tuple[bytes, int], int] = {}
    distinct: list[TokenSequence] = []
    places = []
    for sequence in sequences:
        key = (sequence.ids.tobytes(), sequence.of_second)
        if key not in numbers:
            numbers[key] = len(distinct)
            distinct.append(sequence)
        places.append(numbers[key])
    return distinct, places


@torch.no_grad()
def vectors(network: Network, task: Task, sequences: Sequence[TokenSequence], device: torch.device) -> Tensor:
    """Return [n, width] pooled vectors in the order of `sequences`. Equal sequences are encoded once."""
    distinct, places = without_repeats(sequences)
    found: Tensor | None = None
    for group in by_length(distinct):
        encoded = pack([distinct[i] for i in group]).to(device)
        pooled = task.vectors(network.body(encoded, tokens_read([encoded], [task.pooling.first_only])), encoded)
        if found is None:
            found = pooled.new_empty(len(distinct), pooled.shape[1])
        found[torch.tensor(group, device=device)] = pooled
    assert found is not None, "callers never ask for no rows"
    return found[torch.tensor(places, device=device)]


@torch.no_grad()
def token_outputs(
    network: Network, task: Task, sequences: Sequence[TokenSequence], device: torch.device
) -> list[Tensor]:
    """Return the outputs [l, k] of all tokens of each sequence. Equal sequences are encoded once."""
    distinct, places = without_repeats(sequences)
    found: dict[int, Tensor] = {}
    for group in by_length(distinct):
        encoded = pack([distinct[i] for i in group]).to(device)
        output = task.outputs([task.vectors(network.body(encoded), encoded)])
        found.update(zip(group, output.split(encoded.lengths), strict=True))
    return [found[place] for place in places]


@torch.no_grad()
def answers(
    network: Network, name: str, rows: Sequence[Sequence[TokenSequence]], device: torch.device
) -> NDArray[np.float64]:
    """Return [n, classes] probabilities or [n] numbers (on the training scale) for rows of one or two sequences."""
    task = network.task(name)
    with _at_rest(network):
        if task.pooling.keeps_tokens:
            texts = [row[0] for row in rows]
            return word_answers(texts, token_outputs(network, task, texts, device), task.read_words)
        result: NDArray[np.float64] = (
            network.task(name).read(_sides(network, name, rows, device)).double().cpu().numpy()
        )
        return result


@dataclass(frozen=True)
class Scored:
    """Predictions, loss and projected vectors of a whole dataset."""

    predictions: NDArray[np.float64]
    """[n, classes] probabilities or [n] numbers, on the training scale"""
    loss: float
    """mean over rows, without the regularization term"""
    plane: Plane | None
    """2D projection of the rows' vectors; for a bi reading, of the absolute difference |u - v|; None for words"""


@torch.no_grad()
def run_over(network: Network, dataset: Dataset, device: torch.device) -> Scored:
    """Compute predictions, loss and projected vectors of every row in one pass.

    The plane's axes come from the first part of a large dataset: all vectors would need more memory than the model.
    """
    task = network.task(dataset.task)
    if task.pooling.keeps_tokens:
        return _run_over_words(network, dataset, device)
    predictions = points = np.empty(0)
    axes: Axes | None = None
    loss = 0.0
    with _at_rest(network):
        for where, rows in dataset.parts():
            sides = _sides(network, dataset.task, rows, device)
            output = task.outputs(sides)
            loss += float(task.losses(output, torch.from_numpy(dataset.targets[where]).to(device)).double().sum())
            read = task.loss.read(output).double().cpu().numpy()
            vectors = (sides[0] if len(sides) == 1 else (sides[0] - sides[1]).abs()).cpu().numpy()
            if axes is None:
                axes = principal_axes(vectors)
                predictions, points = np.empty((len(dataset), *read.shape[1:])), np.empty((len(dataset), 2))
            predictions[where], points[where] = read, axes.points(vectors)
    assert axes is not None, "a dataset has at least one row"
    return Scored(predictions, loss / len(dataset), Plane(points, axes.explained))


def _run_over_words(network: Network, dataset: Dataset, device: torch.device) -> Scored:
    """The same for labels of words. The loss is that of the first token of each word."""
    task = network.task(dataset.task)
    predictions = np.empty(len(dataset), dtype=object)
    loss = 0.0
    with _at_rest(network):
        for where, rows in dataset.parts():
            texts = [row[0] for row in rows]
            words = seen_words(texts, device)
            output = word_outputs(token_outputs(network, task, texts, device), words)
            target = torch.from_numpy(_seen_targets(dataset, where, texts)).to(device)
            loss += float(task.losses(output, target, words).double().sum())
            predictions[where] = placed(texts, task.read_words(output, words), words)
    return Scored(predictions, loss / len(dataset), None)


def _seen_targets(dataset: Dataset, where: slice, texts: Sequence[TokenSequence]) -> NDArray[np.int64]:
    """[u] the targets of the words that have a token."""
    pairs = zip(dataset.targets[where], texts, strict=True)
    return np.concatenate([own[text.words[:, 2] >= 0] for own, text in pairs if text.words is not None])


@contextmanager
def _at_rest(network: Network) -> Iterator[None]:
    """Set eval mode inside the context and restore the previous mode afterwards."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)


def _sides(network: Network, name: str, rows: Sequence[Sequence[TokenSequence]], device: torch.device) -> list[Tensor]:
    """Return one tensor [n, width] of row vectors, or two for a bi reading."""
    flat = [row[side] for side in range(len(rows[0])) for row in rows]
    return list(vectors(network, network.task(name), flat, device).split(len(rows)))
