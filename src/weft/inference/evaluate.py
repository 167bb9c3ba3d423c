"""Evaluate a split with an engine, or with a network during training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from weft.data.dataset import Dataset
from weft.data.sources import TextSource, find_sources
from weft.evaluation.scoring import Evaluation, scored
from weft.inference.engine import Engine
from weft.inference.joint import Ask
from weft.inference.passes import Scored, run_over
from weft.kinds.truth import Predictions
from weft.tasks.network import Network


def evaluate(
    engine: Engine, datasets: Mapping[str, Dataset], metrics: Mapping[str, Sequence[str]], step: int = 0
) -> Evaluation:
    """Score every task on a split; the first of its `metrics` counts in the overall score."""
    predictions: dict[str, Predictions] = {}
    for source in find_sources(datasets):
        predictions |= _answers(engine, source)
    return scored(step, datasets, metrics, {name: predictions[name] for name in datasets})


def _answers(engine: Engine, source: TextSource) -> dict[str, Predictions]:
    """Predict the rows of a source part by part, so that only the predictions stay in memory."""
    found: dict[str, Predictions] = {}
    for where, rows in source.parts():
        places = {name: place[where] for name, place in source.places.items()}
        asked = {name: np.flatnonzero(place >= 0) for name, place in places.items()}
        asks = [
            Ask(name, source.asked_rows(name, rows, own, places[name][own])) for name, own in asked.items() if len(own)
        ]
        for ask, answers in zip(asks, engine.together(asks), strict=True):
            if ask.task not in found:
                shape = len(source.datasets[ask.task]), *answers.shape[1:]
                found[ask.task] = np.empty(shape, dtype=answers.dtype)
            found[ask.task][places[ask.task][asked[ask.task]]] = answers
    return found


def evaluate_network(network: Network, datasets: Mapping[str, Dataset], step: int, device: torch.device) -> Evaluation:
    """Evaluate during training, including each task's loss and the 2D projection of its vectors."""
    seen: dict[str, Scored] = {}
    for source in find_sources(datasets):
        seen |= run_over(network, source, device)
    seen = {name: seen[name] for name in datasets}
    metrics = {name: network.task(name).metrics for name in datasets}
    found = scored(step, datasets, metrics, {name: one.predictions for name, one in seen.items()})
    losses = {name: one.loss for name, one in seen.items()}
    return replace(
        found, losses=losses, planes={name: one.plane for name, one in seen.items() if one.plane is not None}
    )
