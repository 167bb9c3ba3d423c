"""Ensembles: the mean prediction of several trained models, scored and used as a teacher.

An ensemble needs as many passes as it has members, so it is not a model to ship. It is a folder that names its members:
`distill.teachers` takes it like a run folder, and a student learns from the mean of its members.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.data.dataset import Dataset
from weft.evaluation.scoring import Evaluation, scored
from weft.foundation.atomic import new_folder
from weft.foundation.content import read_json
from weft.foundation.errors import UserError
from weft.foundation.records import JsonRecord, from_json, to_json
from weft.inference.comparing import with_data_of
from weft.inference.evaluate import evaluate
from weft.inference.model import Model, load
from weft.kinds.metrics import choose_metrics
from weft.kinds.truth import Predictions
from weft.runs.model_folder import model_digest, model_folder

FILE = "ensemble.json"


@dataclass(frozen=True, kw_only=True)
class EnsembleMember(JsonRecord):
    """One model of an ensemble."""

    folder: str
    """absolute path of its model folder"""
    digest: str
    """digest of the model; a member that has changed is rejected"""
    scores: dict[str, dict[str, float]]
    """its own dev scores: task -> metric -> value, and `n` rows"""


@dataclass(frozen=True, kw_only=True)
class EnsembleRecord(JsonRecord):
    """ensemble.json: the members of an ensemble and the dev scores of their mean prediction."""

    members: list[EnsembleMember]
    scores: dict[str, dict[str, float]]
    overall: float


def make_ensemble(
    folders: Sequence[Path],
    out: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> EnsembleRecord:
    """Score the mean prediction of several models on their dev rows and write the folder `out`, which names them.

    Members may have different bodies and different tasks. The prediction for a task is the mean over the members that
    have it, on the dev rows of the first of them.
    """
    with new_folder(out) as folder:
        digests = [model_digest(one) for one in folders]
        if len(set(digests)) < max(2, len(digests)):
            raise UserError("an ensemble needs at least two different models")
        models = [load(one, device, trust_code=trust_code) for one in folders]
        owners = _owners(folders, models)
        rows: dict[str, Dataset] = {}
        answers: dict[str, list[Predictions]] = {task: [] for task in owners}
        members = []
        for path, digest, model in zip(folders, digests, models, strict=True):
            own = _evaluate(model, owners, rows, data_dir)
            for task, predictions in own.predictions.items():
                # numbers of members may be scaled differently: they are averaged in the label's units
                in_units = model.labels[task].in_units(predictions)
                answers[task].append(owners[task].labels[task].from_units(in_units))
            where = str(model_folder(path).resolve())
            members.append(EnsembleMember(folder=where, digest=digest, scores=own.scores))
        metrics = {task: _metrics(owner, task) for task, owner in owners.items()}
        auxiliary = [task for task, owner in owners.items() if owner.config.tasks[task].auxiliary]
        means = {task: np.mean(own, axis=0) for task, own in answers.items()}
        found = scored(0, rows, metrics, means, auxiliary=auxiliary)
        record = EnsembleRecord(members=members, scores=found.scores, overall=found.overall)
        (folder / FILE).write_text(to_json(record, indent=2) + "\n", encoding="utf-8")
    return record


def members_of(folder: Path) -> list[Path] | None:
    """Return the model folders of an ensemble; None for any other folder."""
    file = folder / FILE
    if not file.is_file():
        return None
    found = []
    for member in from_json(EnsembleRecord, read_json(file), str(file)).members:
        path = Path(member.folder)
        if not path.is_dir():
            raise UserError(f"{file}: the member {path} does not exist; make the ensemble again with `weft ensemble`")
        if model_digest(path) != member.digest:
            raise UserError(f"{file}: the member {path} has changed; make the ensemble again with `weft ensemble`")
        found.append(path)
    return found


def _owners(folders: Sequence[Path], models: Sequence[Model]) -> dict[str, Model]:
    """Return the first model that has each task; raise UserError if labels differ or cannot be averaged."""
    owners: dict[str, Model] = {}
    for folder, model in zip(folders, models, strict=True):
        for task in model.tasks:
            labels = model.labels[task]
            if not labels.kind.distills:
                raise UserError(
                    f"{folder}: the task {task!r} is of kind {labels.kind.name}, whose predictions cannot be averaged; "
                    "leave it out with `weft remove`"
                )
            first = owners.setdefault(task, model).labels[task]
            if not first.agrees_with(labels):
                raise UserError(
                    f"{folder}: predicts {labels.kind.expected(labels)} in the task {task!r}, but another member "
                    f"{first.kind.expected(first)}; members need the same labels in the same order"
                )
    return owners


def _evaluate(model: Model, owners: dict[str, Model], rows: dict[str, Dataset], data_dir: Path | None) -> Evaluation:
    """Score a member on the dev rows of the tasks' owners, which are kept in `rows`."""
    own: dict[str, Dataset] = {}
    for task in model.tasks:
        own |= with_data_of(model, owners[task].config).datasets([task], "dev", data_dir)
        first = rows.setdefault(task, own[task])
        if not np.array_equal(first.rows, own[task].rows):
            raise UserError(f"task {task!r}: two members read different rows of {own[task].file.source}")
    return evaluate(model.engine, own, {task: _metrics(owners[task], task) for task in own})


def _metrics(model: Model, task: str) -> tuple[str, ...]:
    return tuple(choose_metrics(model.labels[task], model.config.tasks[task].metrics, task))
