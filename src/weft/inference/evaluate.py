"""Evaluate a split with an engine, or with a network during training."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence
from weft.data.sources import TextSource, find_sources
from weft.evaluation.scoring import Evaluation, scored
from weft.evaluation.thresholds import tune
from weft.inference.engine import Engine
from weft.inference.joint import Ask
from weft.inference.passes import Scored, run_over
from weft.kinds.truth import Predictions, Thresholds, Truth
from weft.tasks.network import Network


def evaluate(
    engine: Engine,
    datasets: Mapping[str, Dataset],
    metrics: Mapping[str, Sequence[str]],
    auxiliary: Collection[str] = (),
) -> Evaluation:
    """Score every task on a split; the first of its `metrics` counts in the overall score, unless it is `auxiliary`."""
    predictions: dict[str, Predictions] = {}
    for source in find_sources(datasets):
        predictions |= _answers(engine, source)
    return scored(0, datasets, metrics, {name: predictions[name] for name in datasets}, auxiliary=auxiliary)


def predict_rows(engine: Engine, dataset: Dataset) -> Predictions:
    """Predict all rows of a dataset; numbers on the training scale."""
    (source,) = find_sources({dataset.task: dataset})
    return _answers(engine, source)[dataset.task]


def _answers(engine: Engine, source: TextSource) -> dict[str, Predictions]:
    """Predict the rows of a source part by part, so that only the predictions stay in memory."""
    found: dict[str, NDArray[Any]] = {}
    for where in source.parts():
        rows = source.part_sequences(where)
        places = {name: place[where] for name, place in source.places.items()}
        asked = {name: own for name, place in places.items() if len(own := np.flatnonzero(place >= 0))}
        asks = {
            name: _asks(source.datasets[name], source.asked_rows(name, rows, own, places[name][own]))
            for name, own in asked.items()
        }
        values = iter(engine.together([ask for questions in asks.values() for ask in questions]))
        for name, questions in asks.items():
            sides = [next(values) for _ in questions]
            answers = sides[0] if len(sides) == 1 else np.stack(sides, axis=1)
            if name not in found:
                found[name] = np.empty((len(source.datasets[name]), *answers.shape[1:]), dtype=answers.dtype)
            found[name][places[name][asked[name]]] = answers
    return {name: _ranked(source.datasets[name], own) for name, own in found.items()}


def _asks(dataset: Dataset, rows: Sequence[Sequence[TokenSequence]]) -> list[Ask]:
    """Ask for predictions; for a kind that ranks rows, for the vectors of both texts."""
    if not dataset.labels.kind.ranks:
        return [Ask(dataset.task, rows)]
    return [Ask(dataset.task, [[row[side]] for row in rows], vectors=True) for side in (0, 1)]


def _ranked(dataset: Dataset, found: NDArray[Any]) -> Predictions:
    kind = dataset.labels.kind
    return kind.ranked(found[:, 0], found[:, 1], dataset.targets) if kind.ranks else found


def evaluate_network(
    network: Network,
    datasets: Mapping[str, Dataset],
    step: int,
    device: torch.device,
    thresholds: Mapping[str, Thresholds] | None = None,
) -> Evaluation:
    """Evaluate during training, including each task's loss and the 2D projection of its vectors.

    `thresholds` by task are those to decide by. By default, tasks that tune their thresholds do so on these rows, and
    their scores are cross-fitted.
    """
    seen: dict[str, Scored] = {}
    for source in find_sources(datasets):
        seen |= run_over(network, source, device)
    seen = {name: seen[name] for name in datasets}
    metrics = {name: network.task(name).metrics for name in datasets}
    tuned = {
        name: tune(Truth.of(dataset.labels, dataset.targets), metrics[name], seen[name].predictions)
        for name, dataset in datasets.items()
        if thresholds is None and network.task(name).tunes_thresholds
    }
    cuts = {name: own.cross_fitted for name, own in tuned.items()} if thresholds is None else thresholds
    predictions = {name: one.predictions for name, one in seen.items()}
    auxiliary = [name for name in datasets if network.task(name).auxiliary]
    found = scored(step, datasets, metrics, predictions, cuts, auxiliary)
    losses = {name: one.loss for name, one in seen.items()}
    planes = {name: one.plane for name, one in seen.items() if one.plane is not None}
    return replace(found, losses=losses, planes=planes, tuned=tuned)
