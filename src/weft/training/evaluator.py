"""Evaluation during training: scores, the selection of the best checkpoint, and the final scores."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from weft.data.dataset import Dataset
from weft.evaluation.scoring import Evaluation, dead_heads
from weft.inference.evaluate import evaluate_network
from weft.kinds.metrics import counted, overall
from weft.runs.folder import RunFolder
from weft.runs.records import EvaluationRecord, FinalRecord, ThresholdsRecord
from weft.schedules.plan import Plan
from weft.tasks.network import Network
from weft.tasks.store import load_weights
from weft.training.checkpoint import Progress
from weft.training.listener import TrainListener


@dataclass(frozen=True)
class Scoring:
    """Evaluation during training, and early stopping."""

    dev: Mapping[str, Dataset]
    """dev rows of each task"""
    sample: Mapping[str, Dataset]
    """dev rows that evaluations during training score: all of them, or a sample"""
    train_sample: Mapping[str, Dataset]
    """train rows that are scored too, to show overfitting; can be empty"""
    untrained: Collection[str]
    """tasks without batches: they are scored, but do not count in the selection of the best checkpoint"""
    patience: int | None
    """evaluations without improvement after which the run stops; None disables early stopping"""
    save_best: Callable[[Evaluation, Mapping[str, Dataset]], None]
    """writes the model and the predictions of the best evaluation so far, given its rows"""

    @property
    def samples(self) -> bool:
        """whether evaluations during training score fewer than all dev rows"""
        return any(len(rows) < len(self.dev[name]) for name, rows in self.sample.items())


class Evaluator:
    """Evaluates the network of a run, logs the scores and saves the best model."""

    def __init__(
        self,
        network: Network,
        device: torch.device,
        plan: Plan,
        scoring: Scoring,
        run: RunFolder,
        listener: TrainListener,
    ) -> None:
        self.network = network
        self.device = device
        self.plan = plan
        self.scoring = scoring
        self.run = run
        self.listener = listener

    def evaluate(self, progress: Progress, seconds: float) -> None:
        """Evaluate the network with the weights that it has now, and save it if it is the best so far."""
        evaluation, scores = self._scores(self.scoring.sample, progress.step)
        # Untrained heads are scored but never saved as the best. An undefined score ranks last.
        worth = evaluation.selection if math.isfinite(evaluation.selection) else -1.0
        is_best = progress.step > 0 and (progress.best_score is None or worth > progress.best_score)
        if is_best:
            progress.best_step, progress.best_score, progress.waited = progress.step, worth, 0
            self.scoring.save_best(evaluation, self.scoring.sample)
        elif progress.step > 0:
            progress.waited += 1
        record = EvaluationRecord(**scores, best=is_best, seconds=round(seconds, 3), sample=self.scoring.samples)
        self.run.log(record)
        self.listener.evaluated(evaluation, is_best)
        for warning in record.warnings:
            self.listener.noted(warning)

    def finish(self, progress: Progress, seconds: Callable[[], float]) -> None:
        """Evaluate the best model on all dev rows and save it again, with what depends on these rows.

        The saved model is loaded into the network, so a resumed run needs no more than the run folder.
        """
        assert progress.best_step is not None, "the last step of a plan is evaluated"
        self.listener.noted(f"scoring the best model, after step {progress.best_step:,}, on all dev rows")
        load_weights(self.network, self.run.paths.model)
        selected_on = {name: len(rows) for name, rows in self.scoring.sample.items()}
        evaluation, scores = self._scores(self.scoring.dev, progress.best_step)
        self.scoring.save_best(replace(evaluation, selected_on=selected_on), self.scoring.dev)
        self.run.log(FinalRecord(**scores, best=True, seconds=round(seconds(), 3), selected_on=selected_on))

    def _scores(self, dev: Mapping[str, Dataset], step: int) -> tuple[Evaluation, dict[str, Any]]:
        """Evaluate dev rows and the sample of train rows; return the scores also as the fields of a record."""
        evaluation = self._selected(evaluate_network(self.network, dev, step, self.device))
        train = None
        if self.scoring.train_sample:
            final = {name: tuned.final for name, tuned in evaluation.tuned.items()}
            train = evaluate_network(self.network, self.scoring.train_sample, step, self.device, final)
        # untrained heads give constant predictions, which needs no warning
        trained = {name: dataset for name, dataset in dev.items() if name not in self.scoring.untrained}
        return evaluation, {
            "step": step,
            "epoch": self.plan.epoch(step - 1) if step else 0,
            "dev": evaluation.scores,
            "overall": evaluation.overall,
            "selection": evaluation.selection,
            "untrained": evaluation.untrained,
            "auxiliary": evaluation.auxiliary,
            "losses": evaluation.losses,
            "train": None if train is None else train.scores,
            "train_losses": None if train is None else train.losses,
            "thresholds": self._thresholds(evaluation),
            "warnings": tuple(dead_heads(evaluation, trained) if step > 0 else []),
        }

    def _thresholds(self, evaluation: Evaluation) -> dict[str, ThresholdsRecord]:
        found = {}
        for task, tuned in evaluation.tuned.items():
            labels = self.network.task(task).labels
            names = labels.kind.decisions(labels.names)
            found[task] = ThresholdsRecord(
                at=dict(zip(names, tuned.final.tolist(), strict=True)),
                kept=tuple(name for name, kept in zip(names, tuned.kept, strict=True) if kept),
                default=tuned.default,
                naive=tuned.naive,
            )
        return found

    def _selected(self, evaluation: Evaluation) -> Evaluation:
        """Add the score that selects the best checkpoint. If no task that counts is known to train, all of them do."""
        untrained = tuple(task for task in evaluation.scores if task in self.scoring.untrained)
        primary = counted({task: self.network.task(task).primary for task in evaluation.scores}, evaluation.auxiliary)
        selecting = counted(primary, untrained)
        return replace(evaluation, selection=overall(evaluation.scores, selecting), untrained=untrained)
