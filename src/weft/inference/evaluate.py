"""Evaluate a split with an engine, or with a network during training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from weft.data.dataset import Dataset
from weft.evaluation.scoring import Evaluation, scored
from weft.inference.engine import Engine
from weft.inference.passes import run_over
from weft.kinds.truth import Predictions
from weft.tasks.network import Network


def evaluate(
    engine: Engine, datasets: Mapping[str, Dataset], metrics: Mapping[str, Sequence[str]], step: int = 0
) -> Evaluation:
    """Score every task on a split; the first of its `metrics` counts in the overall score."""
    predictions = {name: _answers(engine, dataset) for name, dataset in datasets.items()}
    return scored(step, datasets, metrics, predictions)


def _answers(engine: Engine, dataset: Dataset) -> Predictions:
    """Predict a dataset part by part, so that only the predictions stay in memory."""
    found: Predictions | None = None
    for where, rows in dataset.parts():
        answers = engine.answers(dataset.task, rows)
        if found is None:
            found = np.empty((len(dataset), *answers.shape[1:]), dtype=answers.dtype)
        found[where] = answers
    assert found is not None, "a dataset has at least one row"
    return found


def evaluate_network(network: Network, datasets: Mapping[str, Dataset], step: int, device: torch.device) -> Evaluation:
    """Evaluate during training, including each task's loss and the 2D projection of its vectors."""
    seen = {name: run_over(network, dataset, device) for name, dataset in datasets.items()}
    metrics = {name: network.task(name).metrics for name in datasets}
    found = scored(step, datasets, metrics, {name: one.predictions for name, one in seen.items()})
    losses = {name: one.loss for name, one in seen.items()}
    return replace(
        found, losses=losses, planes={name: one.plane for name, one in seen.items() if one.plane is not None}
    )
