"""Distillation: a student learns from the predictions of trained models besides the labels.

A teacher predicts the train rows of a task once. Its predictions are stored by row in the cache folder, as NumPy
files that are memory-mapped, and a batch carries them as it carries targets. The key of a file depends on the
teacher's content, the tokenized rows and which of them belong to the train split, so all recipes with the same teacher
and data share it. Files are written atomically, and their digest is verified whenever they are opened.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import Field, field_validator

from weft.data.arrays import array_folder, open_array, store_array
from weft.data.dataset import Dataset
from weft.data.frames import GivenFrames
from weft.data.tokenizer import Tokenizer
from weft.foundation.config import Config
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.inference.evaluate import predict_rows
from weft.inference.model import load
from weft.kinds.labels import Labels
from weft.kinds.truth import Predictions
from weft.runs.model_folder import ModelSettings, model_digest, model_folder, read_model
from weft.tasks.building import task_files
from weft.tasks.config import ModelConfig
from weft.training.ensemble import members_of

FORMAT = "1"
KEY = "distill.teachers"


class DistillConfig(Config):
    """Teachers, and how much their predictions count beside the labels."""

    teachers: tuple[str, ...] = Field(min_length=1)
    """Run folders, model folders or ensembles, relative to the recipe. A teacher teaches the tasks that it shares with
    the recipe, by name. The predictions of several teachers of a task are averaged."""
    temperature: float = Field(default=2.0, gt=0)
    """Temperature of the teachers' and the student's probabilities. Above 1, unlikely classes count more."""
    weight: float | None = Field(default=None, gt=0, le=1)
    """Weight of the distillation loss; the loss on the labels has 1 - weight. Defaults to 0.5, or to 1 with
    `anneal`."""
    anneal: bool = False
    """Whether the weight falls linearly to 0 over the run, from the teachers to the labels."""

    @field_validator("teachers")
    @classmethod
    def _each_once(cls, teachers: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(teachers)) < len(teachers):
            raise ValueError(f"found {list(teachers)}; expected every teacher once")
        return teachers

    def relative_to(self, base: Path) -> "DistillConfig":
        """Return a copy with absolute paths."""
        folders = tuple(str((base / Path(folder).expanduser()).resolve()) for folder in self.teachers)
        return self.model_copy(update={"teachers": folders})


@dataclass(frozen=True)
class Distillation:
    """The weight of teachers over a run: `w`, or `w (1 - step / steps)` with annealing.

    With `w = 1` and annealing, training moves from the teachers alone to the labels. (Clark et al., "BAM! Born-Again
    Multi-Task Networks for Natural Language Understanding", 2019)
    """

    config: DistillConfig
    steps: int
    """length of the run"""
    unlabelled: frozenset[str] = frozenset()
    """tasks without any label to train on: their teachers have the weight 1 throughout"""

    @property
    def temperature(self) -> float:
        return self.config.temperature

    def weight(self, step: int, task: str) -> float:
        """Return the weight of the distillation loss of a task at a step, counted from 0."""
        if task in self.unlabelled:
            return 1.0
        anneal = self.config.anneal
        weight = (1.0 if anneal else 0.5) if self.config.weight is None else self.config.weight
        return weight * (1 - step / self.steps) if anneal else weight


@dataclass(frozen=True)
class Teacher:
    """A trained model whose predictions a student learns from."""

    name: str
    """the folder that the recipe names"""
    folder: Path
    """model folder"""
    settings: ModelSettings
    digest: str
    """identifies the model's content"""

    def teaches(self, task: str) -> bool:
        """Return whether it has a task of this name, of a kind that can be distilled."""
        return task in self.settings.labels and self.settings.labels[task].kind.distills


@dataclass(frozen=True)
class StudentData:
    """What teachers need to predict the train rows of a student."""

    config: ModelConfig
    """the student's model and data"""
    frames: GivenFrames | None
    """rows given in Python"""
    device: str
    trust_code: bool


def find_teachers(config: DistillConfig | None) -> list[Teacher]:
    """Open the teachers. The members of an ensemble are teachers."""
    found: dict[str, Teacher] = {}
    for name in config.teachers if config else ():
        try:
            for folder in members_of(Path(name)) or [model_folder(Path(name))]:
                teacher = Teacher(name, folder, read_model(folder), model_digest(folder))
                found[teacher.digest] = teacher  # a member of two ensembles counts once
        except UserError as error:
            raise UserError(f"{KEY}: {error}") from None
    return list(found.values())


def known_labels(folder: Path, teachers: Sequence[Teacher]) -> dict[str, Labels]:
    """Return the labels of all tasks of the teachers and of the model in `folder`, which a run starts from.

    They are without tuned thresholds, which belong to the weights of their model.
    """
    found: dict[str, Labels] = {}
    for teacher in reversed(teachers):  # the first teacher and, above all, the initial model decide
        found |= teacher.settings.labels
    if (folder / "weft.json").exists():
        found |= read_model(folder).labels
    return {task: replace(labels, thresholds=None) for task, labels in found.items()}


def require_taught(teacher: Teacher, student: ModelConfig, labels: Mapping[str, Labels]) -> None:
    """Raise UserError if a teacher shares no task with the student, or a task with other labels or texts."""
    own, name = teacher.settings, teacher.name
    shared = [task for task in student.tasks if teacher.teaches(task)]
    if not shared:
        raise UserError(
            f"{KEY}: {name} has the tasks {', '.join(own.config.tasks)} and none of the recipe's "
            f"({', '.join(student.tasks)}); a teacher teaches tasks that have the same name, and classes or numbers as "
            "labels"
        )
    for task in shared:
        if not labels[task].agrees_with(own.labels[task]):
            theirs, ours = (one.kind.expected(one) for one in (own.labels[task], labels[task]))
            raise UserError(
                f"{KEY}: {name} predicts {theirs} ({own.labels[task].kind.name}) in the task {task!r}, but the recipe "
                f"has {ours} ({labels[task].kind.name}); a teacher needs the same kind and the same labels in the "
                "same order"
            )
        pairs = [settings.tasks[task].reading != "single" for settings in (own.config, student)]
        if pairs[0] != pairs[1]:
            reads = ["two texts" if is_pair else "one text" for is_pair in pairs]
            raise UserError(f"{KEY}: {name} reads {reads[0]} per row in the task {task!r}, but the recipe {reads[1]}")


def teacher_notes(teachers: Sequence[Teacher], student: ModelConfig) -> list[str]:
    """Return notes about tasks without a teacher, and about teachers that were probably trained on dev rows."""
    untaught = [task for task in student.tasks if teachers and not any(one.teaches(task) for one in teachers)]
    found = [f"{task}: has no teacher and learns from its labels alone" for task in untaught]
    for teacher in teachers:
        theirs = teacher.settings.config
        for task, own in student.tasks.items():
            split = (own.data.dev_fraction, own.data.split_seed(student.seed))
            if own.data.dev_fraction is None or task not in theirs.tasks:
                continue
            data = theirs.tasks[task].data
            if (data.dev_fraction, data.split_seed(theirs.seed)) != split:
                found.append(
                    f"tasks.{task}.data.dev_fraction: the teacher {teacher.folder} has another seed or dev_fraction, "
                    "so it was probably trained on some of this run's dev rows, which inflates the scores; use the "
                    "same seed, or a dev file"
                )
    return found


class TeacherPredictions:
    """The mean prediction of a task's teachers for rows of its train split."""

    def __init__(self, task: str, teachers: Sequence[Teacher], train: Dataset, student: StudentData) -> None:
        self.task = task
        self.teachers = teachers
        self.train = train
        self.student = student

    def __call__(self, rows: Rows) -> Predictions:
        """Return [n, classes] probabilities or [n] numbers, on the student's training scale."""
        labels = self.train.labels
        own = [
            labels.from_units(teacher.settings.labels[self.task].in_units(answers[rows]))
            for teacher, answers in zip(self.teachers, self.stored, strict=True)
        ]
        mean: Predictions = np.mean(own, axis=0)
        return mean

    def prepare(self) -> str:
        """Compute or open the predictions of all rows before training; return what to tell the user."""
        start = time.perf_counter()
        count = len(self.stored)
        who = "a teacher" if count == 1 else f"the mean of {count} teachers"
        seconds = time.perf_counter() - start
        return f"{self.task}: learns from {who}; predictions for {len(self.train):,} rows were ready in {seconds:.0f} s"

    @cached_property
    def stored(self) -> list[Predictions]:
        """The predictions of each teacher for all train rows, memory-mapped; computed now if the cache lacks them."""
        return [self._open(teacher) for teacher in self.teachers]

    def _open(self, teacher: Teacher) -> Predictions:
        rows = self._as_read_by(teacher)
        parts = (FORMAT, teacher.digest, self.task, rows.file.key, hashlib.sha256(rows.rows.tobytes()).hexdigest())
        target = array_folder("teachers") / f"{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:40]}.npy"
        stored: Predictions | None = open_array(target)
        if stored is None:
            model = load(teacher.folder, self.student.device, trust_code=self.student.trust_code)
            stored = store_array(predict_rows(model.engine, rows), target)
        return stored

    def _as_read_by(self, teacher: Teacher) -> Dataset:
        """Return the student's train rows with the teacher's tokenizer, reading and maximum length."""
        theirs, ours = teacher.settings.config, self.student.config
        student_data = ours.tasks[self.task].data
        task = theirs.tasks[self.task].model_copy(update={"data": student_data})
        # the seed decides which rows `dev_fraction` leaves to train
        config = theirs.model_copy(update={"tasks": {self.task: task}, "seed": ours.seed})
        files = task_files(config, self.task, Tokenizer.load(teacher.folder), frames=self.student.frames)
        rows = files.training(self.train.labels)
        if files.has("unlabelled"):
            rows = rows.with_unlabelled(files.open("unlabelled"))
        assert np.array_equal(rows.rows, self.train.rows), "the same file and rules give the same rows"
        return rows
