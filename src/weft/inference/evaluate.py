"""Evaluate a split with an engine, or with a network during training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from weft.data.dataset import Dataset
from weft.data.sources import TextSource, find_sources
from weft.evaluation.scoring import Evaluation, scored
from weft.evaluation.thresholds import tune
from weft.inference.engine import Engine
from weft.inference.joint import Ask
from weft.inference.passes import Scored, run_over
from weft.kinds.truth import Predictions, Thresholds, Truth
from weft.tasks.network import Network


def evaluate(
    engine: Engine, datasets: Mapping[str, Dataset], metrics: Mapping[str, Sequence[str]], step: int = 0
) -> Evaluation:
    """Score every task on a split; the first of its `metrics` counts in the overall score."""
    predictions: dict[str, Predictions] = {}
    for source in find_sources(datasets):
        predictions |= _answers(engine, source)
    return scored(step, datasets, metrics, {name: predictions[name] for name in datasets})


def predict_rows(engine: Engine, dataset: Dataset) -> Predictions:
    """Predict all rows of a dataset; numbers on the training scale."""
    (source,) = find_sources({dataset.task: dataset})
    return _answers(engine, source)[dataset.task]


def _answers(engine: Engine, source: TextSource) -> dict[str, Predictions]:
    """Predict the rows of a source part by part, so that only the predictions stay in memory."""
    found: dict[str, Predictions] = {}
    for where, rows in source.parts():
        places = {name: place[where] for name, place in source.places.items()}
        asked = {name: np.flatnonzero(place >= 0) for name, place in places.items()}
        asks = [Ask(name, [rows[i] for i in own]) for name, own in asked.items() if len(own)]
        for ask, answers in zip(asks, engine.together(asks), strict=True):
            if ask.task not in found:
                found[ask.task] = np.empty((len(source.datasets[ask.task]), *answers.shape[1:]))
            found[ask.task][places[ask.task][asked[ask.task]]] = answers
    return found


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
    found = scored(step, datasets, metrics, {name: one.predictions for name, one in seen.items()}, cuts)
    losses = {name: one.loss for name, one in seen.items()}
    return replace(found, losses=losses, planes={name: one.plane for name, one in seen.items()}, tuned=tuned)
