"""The audit of a recipe's data: duplicates, contradictions, probable label errors, balance and outliers."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from weft.audit.agreement import agreements
from weft.audit.features import row_features
from weft.audit.findings import (
    CONFLICT,
    DUPLICATE,
    LABEL_ERROR,
    LEAK,
    LENGTH,
    NEAR_DUPLICATE,
    NEAR_LEAK,
    SCRIPT,
    AuditReport,
    RowFinding,
    TaskAudit,
)
from weft.audit.label_errors import FEWEST, FOLDS, LabelErrors, label_errors
from weft.audit.outliers import odd_lengths, other_scripts
from weft.audit.repeats import Repeat, Repeats, find_repeats
from weft.bodies.body import Body
from weft.data.dataset import Dataset
from weft.data.frames import place
from weft.data.remarks import row_texts
from weft.foundation.errors import UserError
from weft.kinds.metrics import title
from weft.recipes.assembly import TaskData

RARE_ROWS, RARE_SHARE = 8, 0.02
"""A class with fewer train rows, or a smaller fraction of them, is rare."""


def audit(data: Mapping[str, TaskData], body: Body, device: torch.device, seed: int) -> AuditReport:
    """Audit the train and dev rows of all tasks that have train rows."""
    data = {name: task for name, task in data.items() if len(task.train)}
    repeats = {name: find_repeats((task.train, task.dev), seed) for name, task in data.items()}
    tasks = [TaskExamination(task, repeats[name], seed).examine(body, device) for name, task in data.items()]
    keys = {name: repeats[name].keys[: len(task.train)] for name, task in data.items()}
    return AuditReport(tasks, agreements({name: task.train for name, task in data.items()}, keys))


class TaskExamination:
    """The audit of one task. Rows are numbered over both splits, train first."""

    def __init__(self, data: TaskData, repeats: Repeats, seed: int) -> None:
        self.task = data.train.task
        self.labels = data.labels
        self.splits = {"train": data.train, "dev": data.dev}
        self.train, self.dev = data.train, data.dev
        self.repeats = repeats
        self.seed = seed

    def examine(self, body: Body, device: torch.device) -> TaskAudit:
        notes = list(self._balance())
        errors: list[RowFinding] = []
        if why := self.labels.kind.why_no_suspects:
            notes.append(f"label errors were not searched: {why}")
        elif len(self.train) < FEWEST:
            notes.append(f"label errors were not searched: {len(self.train)} train rows, expected at least {FEWEST}")
        else:
            try:
                features = row_features(body, self.train, device)
                found = label_errors(self.train, features, self.repeats.clusters[: len(self.train)], self.seed)
            except UserError as error:
                notes.append(f"label errors were not searched: {error}")
            else:
                errors = list(self._label_errors(found))
                notes.append(
                    f"label errors: held-out {title(found.metric)} of a linear model on frozen features, {FOLDS} "
                    f"folds: {found.score:.2f}; the lower it is, the more of the listed rows are only difficult"
                )
        findings = [*self._repeated(), *self._conflicts(), *errors, *self._outliers()]
        return TaskAudit(self.task, len(self.train), len(self.dev), self._classes(), findings, notes)

    def _classes(self) -> dict[str, tuple[int, int]]:
        train, dev = (self.labels.kind.class_counts(self.labels, split.targets) for split in self.splits.values())
        return {name: (count, dev[name]) for name, count in train.items()}

    def _balance(self) -> Iterator[str]:
        least = max(RARE_ROWS, RARE_SHARE * len(self.train))
        classes = self._classes()
        if rare := [f"{name} {count:,}" for name, (count, _) in classes.items() if count < least]:
            yield f"rare classes in train (rows): {', '.join(rare)}"
        if absent := [name for name, (_, count) in classes.items() if count == 0]:
            yield f"classes without a dev row, so that their score is unknown: {', '.join(absent)}"

    def _repeated(self) -> Iterator[RowFinding]:
        """For each row, its nearest repeat within the split and across splits."""
        nearest: dict[tuple[str, int], Repeat] = {}
        for repeat in [*self.repeats.exact, *self.repeats.near]:
            is_leak = repeat.earlier < len(self.train) <= repeat.row
            is_exact = repeat.similarity == 1.0
            what = (LEAK if is_exact else NEAR_LEAK) if is_leak else (DUPLICATE if is_exact else NEAR_DUPLICATE)
            known = nearest.get((what, repeat.row))
            if known is None or repeat.similarity > known.similarity:
                nearest[what, repeat.row] = repeat
        for (what, row), repeat in nearest.items():
            yield self._finding(what, row, score=repeat.similarity, detail=f"like {self._place(repeat.earlier)}")

    def _conflicts(self) -> Iterator[RowFinding]:
        """All rows of texts that have several labels."""
        targets = np.concatenate([split.targets for split in self.splits.values()])
        _, first, group = np.unique(self.repeats.keys, return_index=True, return_inverse=True)
        differs = self.labels.kind.differ(self.labels, targets, targets[first[group]])
        torn = np.isin(group, group[differs])
        for row in np.flatnonzero(torn)[np.argsort(group[torn], kind="stable")]:
            others = [other for other in np.flatnonzero(group == group[row]) if other != row]
            detail = "; ".join(f"{self._label(int(other))} in {self._place(int(other))}" for other in others[:3])
            yield self._finding(CONFLICT, int(row), detail=detail)

    def _label_errors(self, found: LabelErrors) -> Iterator[RowFinding]:
        for row, quality, suggestion in zip(found.rows, found.quality, found.suggestions, strict=True):
            yield self._finding(LABEL_ERROR, int(row), suggestion=suggestion, score=float(quality))

    def _outliers(self) -> Iterator[RowFinding]:
        usual: str | None = None
        start = 0
        for split in self.splits.values():
            texts = [" ".join(row) for row in row_texts(split)]
            usual, others = other_scripts(texts, usual)
            for row, script in others.items():
                yield self._finding(SCRIPT, start + row, detail=f"{script}, usual: {usual}")
            tokens = np.sum(split.text_lengths(), axis=0)
            for row in odd_lengths(tokens):
                detail = f"{tokens[row]} tokens, median: {np.median(tokens):.0f}"
                yield self._finding(LENGTH, start + int(row), detail=detail)
            start += len(split)

    def _at(self, row: int) -> tuple[str, Dataset, int]:
        """Return the split of a row, by name and as a dataset, and its number there."""
        if row < len(self.train):
            return "train", self.train, row
        return "dev", self.dev, row - len(self.train)

    def _place(self, row: int) -> str:
        _, split, own = self._at(row)
        return place(split.file.source, split.file.line(int(split.rows[own])))

    def _label(self, row: int) -> str:
        _, split, own = self._at(row)
        return self.labels.kind.shown(self.labels.names, self.labels.in_units(split.targets[own]))

    def _finding(
        self, what: str, row: int, *, suggestion: str = "", score: float | None = None, detail: str = ""
    ) -> RowFinding:
        name, split, own = self._at(row)
        line = split.file.line(int(split.rows[own]))
        texts = tuple(split.texts(own))
        label = self._label(row)
        return RowFinding(self.task, what, name, str(split.file.source), line, texts, label, suggestion, score, detail)
