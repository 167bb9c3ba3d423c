"""Forward passes over many rows without training: large batches, no dropout, each distinct text encoded once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence, pack
from weft.data.sources import TextSource
from weft.evaluation.plane import Axes, Plane, principal_axes
from weft.foundation.values import Encoded, Rows
from weft.inference.words import placed, seen_words, word_outputs
from weft.tasks.network import Network, split_layers, tokens_read
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
    numbers: dict[tuple[bytes, int, int], int] = {}
    distinct: list[TokenSequence] = []
    places = []
    for sequence in sequences:
        place = numbers.setdefault(sequence.key, len(distinct))
        if place == len(distinct):
            distinct.append(sequence)
        places.append(place)
    return distinct, places


@torch.no_grad()
def vectors(network: Network, task: Task, sequences: Sequence[TokenSequence], device: torch.device) -> Tensor:
    """Return [n, width] pooled vectors in the order of `sequences`. Equal sequences are encoded once."""
    distinct, places = without_repeats(sequences)
    return pooled(network, [task.name], distinct, device).vectors[task.name][torch.tensor(places, device=device)]


class Pooled(NamedTuple):
    """What a pass over distinct sequences gives to each task."""

    vectors: dict[str, Tensor]
    """task -> [n, width] vectors, from its own pooling"""
    tokens: dict[str, dict[int, Tensor]]
    """task whose pooling keeps tokens -> number of a sequence -> outputs [l, k] of all of its tokens"""


def pooled(
    network: Network,
    tasks: Collection[str],
    sequences: Sequence[TokenSequence],
    device: torch.device,
    owners: Sequence[str] | None = None,
) -> Pooled:
    """Pool the sequences for each task. A sequence goes through the body once.

    With per-task adapters it goes through the body once for each task, still in one pass. `owners` are the tasks of the
    sequences, if each is for one task; rows of other tasks' sequences then stay empty.
    """
    found = Pooled({}, {name: {} for name in tasks if network.task(name).pooling.keeps_tokens})
    # tasks whose states are the same, which read the same sequences
    alike = [list(tasks)] if network.shares_states else [[name] for name in tasks]
    first_only = [all(network.task(name).pooling.first_only for name in names) for names in alike]
    for group in by_length(sequences):
        chosen = [[i for i in group if owners is None or owners[i] in names] for names in alike]
        texts = [pack([sequences[i] for i in own]).to(device) for own in chosen if own]
        present = [(names, own, only) for names, own, only in zip(alike, chosen, first_only, strict=True) if own]
        spans = [(names[0], len(text.ids)) for (names, _, _), text in zip(present, texts, strict=True)]
        read = tokens_read(texts, [only for _, _, only in present])
        pieces = split_layers(network.read(Encoded.join(texts), spans, read), texts)
        for (names, own, _), text, hidden in zip(present, texts, pieces, strict=True):
            where = torch.tensor(own, device=device)
            for name in names:
                task = network.task(name)
                vectors = task.vectors(hidden, text)
                if name in found.tokens:
                    lengths = [len(sequences[i].ids) for i in own]
                    found.tokens[name].update(zip(own, task.outputs([vectors]).split(lengths), strict=True))
                    continue
                if name not in found.vectors:
                    found.vectors[name] = vectors.new_empty(len(sequences), vectors.shape[1])
                found.vectors[name][where] = vectors
    return found


@dataclass(frozen=True)
class Scored:
    """Predictions, loss and projected vectors of a whole dataset."""

    predictions: NDArray[np.float64]
    """[n, classes] probabilities or [n] numbers, on the training scale"""
    loss: float
    """mean over rows, or words if they have labels, without the regularization term"""
    plane: Plane | None
    """2D projection of the rows' vectors; for a bi reading, of the absolute difference |u - v|; None for words"""


class _Scorer:
    """Collects the results of one task, part by part.

    The plane's axes come from the first part of a large dataset: all vectors would need more memory than the model.
    """

    def __init__(self, task: Task, dataset: Dataset) -> None:
        self.task = task
        self.dataset = dataset
        self.kind = dataset.labels.kind
        self.predictions: NDArray[Any] = np.empty(0)
        self.points = np.empty(0)
        self.axes: Axes | None = None
        self.loss = 0.0
        self.units = 0

    def add(self, rows: Rows, sides: list[Tensor]) -> None:
        """Add some rows of the data set, given one tensor [n, width] of row vectors, or two for a bi reading."""
        output = self.task.outputs(sides)
        target = torch.from_numpy(self.dataset.targets[rows]).to(output.device)
        self.loss += float(self.task.losses_apart(output, target).double().sum())
        self.units += len(rows)
        read = pair_vectors(sides) if self.kind.ranks else self.task.loss.read(output).double().cpu().numpy()
        vectors = (sides[0] if len(sides) == 1 else (sides[0] - sides[1]).abs()).cpu().numpy()
        if self.axes is None:
            self.axes = principal_axes(vectors)
            self.predictions = np.empty((len(self.dataset), *read.shape[1:]), dtype=read.dtype)
            self.points = np.empty((len(self.dataset), 2))
        self.predictions[rows], self.points[rows] = read, self.axes.points(vectors)

    def add_words(self, rows: Rows, outputs: Sequence[Tensor]) -> None:
        """Add some rows of a data set with labels of words, given the outputs [l, k] of all tokens of each row.

        The loss is that of the first token of each word. There is no plane.
        """
        texts = [self.dataset.sequences(int(row))[0] for row in rows]
        words = seen_words(texts, outputs[0].device)
        output = word_outputs(outputs, words)
        pairs = zip(self.dataset.targets[rows], texts, strict=True)
        seen = [own[text.words[:, 2] >= 0] for own, text in pairs if text.words is not None]
        target = torch.from_numpy(np.concatenate(seen)).to(output.device)
        self.loss += float(self.task.losses(output, target, words).double().sum())
        self.units += len(target)
        if not len(self.predictions):
            self.predictions = np.empty(len(self.dataset), dtype=object)
        self.predictions[rows] = placed(texts, self.task.read_words(output, words), words)

    def scored(self) -> Scored:
        plane = None if self.axes is None else Plane(self.points, self.axes.explained)
        predictions = self.predictions
        if self.kind.ranks:
            predictions = self.kind.ranked(predictions[:, 0], predictions[:, 1], self.dataset.targets)
        return Scored(predictions, self.loss / max(1, self.units), plane)


@torch.no_grad()
def run_over(network: Network, source: TextSource, device: torch.device) -> dict[str, Scored]:
    """Compute predictions, loss and projected vectors of every row of every task of a source, in one pass."""
    scorers = {name: _Scorer(network.task(name), dataset) for name, dataset in source.datasets.items()}
    with at_rest(network):
        for where in source.parts():
            asked = {name: np.flatnonzero(source.places[name][where] >= 0) for name in scorers}
            asked = {name: own for name, own in asked.items() if len(own)}
            encoded = {}
            for name, own in asked.items():
                rows = source.places[name][where[own]]
                stored = source.datasets[name].vectors(rows)
                if stored is None:
                    encoded[name] = own
                else:
                    scorers[name].add(rows, [side.to(device) for side in stored])
            if encoded:
                _encode(network, source, where, {name: (scorers[name], own) for name, own in encoded.items()}, device)
    return {name: scorer.scored() for name, scorer in scorers.items()}


def _encode(
    network: Network,
    source: TextSource,
    where: Rows,
    asked: Mapping[str, tuple[_Scorer, Rows]],
    device: torch.device,
) -> None:
    """Run one part of a source through the body; `asked` are the places in the part that each task asks about."""
    rows = source.part_sequences(where)
    distinct, places = without_repeats(_flat(rows))
    sides = torch.tensor(places, device=device).split(len(rows))
    found = pooled(network, list(asked), distinct, device)
    for name, (scorer, own) in asked.items():
        numbers = source.places[name][where[own]]
        if name in found.tokens:
            scorer.add_words(numbers, [found.tokens[name][places[i]] for i in own])
        else:
            chosen = torch.from_numpy(own).to(device)
            scorer.add(numbers, [found.vectors[name][side[chosen]] for side in sides])


def pair_vectors(sides: Sequence[Tensor]) -> NDArray[np.float32]:
    """[n, 2, width] the vectors of both texts of each row, for kinds that rank rows"""
    return torch.stack([side.float() for side in sides[:2]], dim=1).cpu().numpy()


@contextmanager
def at_rest(network: torch.nn.Module) -> Iterator[None]:
    """Set eval mode inside the context and restore the previous mode afterwards."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)


def _flat(rows: Sequence[Sequence[TokenSequence]]) -> list[TokenSequence]:
    """All first sequences, then all second ones."""
    return [row[side] for side in range(len(rows[0])) for row in rows]
