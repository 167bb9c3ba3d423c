"""The training loop."""

import signal
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import nn

from weft.foundation.errors import Interrupted, RunError
from weft.foundation.values import Window
from weft.runs.folder import RunFolder
from weft.runs.records import ConflictsRecord, StepRecord
from weft.schedules.plan import Plan
from weft.training.averaging import WeightAverage
from weft.training.checkpoint import Checkpoints, Progress
from weft.training.distributed import SOLO, Processes
from weft.training.evaluator import Evaluator, Scoring
from weft.training.frozen import FrozenOutputs
from weft.training.listener import TrainListener
from weft.training.phases import Rates
from weft.training.step import Step
from weft.training.trainable import TrainableConfig, set_trainable

ECHO_SECONDS = 5.0
"""a signal that follows within this time is a duplicate, if several processes run"""


@dataclass(frozen=True)
class Course:
    """The course of a run: windows, learning rates and trainable parameters."""

    plan: Plan
    """the windows of all steps"""
    rates: Rates
    """the learning rate of each step"""
    modes: Sequence[TrainableConfig]
    """trainable parameters of each phase"""
    average: WeightAverage | None = None
    """the average of the weights that is evaluated and saved instead of the weights; None for the weights"""


@dataclass(frozen=True)
class Saving:
    """Where and when a run is saved."""

    run: RunFolder
    """the run folder"""
    settings: dict[str, Any]
    """settings that must equal those of a checkpoint to resume from it"""
    every_steps: int
    """steps between checkpoints; one is also written at the end of each epoch"""


class Trainer:
    """Runs a plan to its end, from the last checkpoint if there is one."""

    def __init__(
        self,
        step: Step,
        course: Course,
        scoring: Scoring,
        saving: Saving,
        listener: TrainListener,
        processes: Processes = SOLO,
        frozen: FrozenOutputs | None = None,
    ) -> None:
        """`frozen` stores the outputs of frozen layers. Defaults to computing them at every step."""
        self.network = step.network
        self.step = step
        self.plan = course.plan
        self.course = course
        self.scoring = scoring
        self.run = saving.run
        self.saving = saving
        self.listener = listener
        self.processes = processes
        self.frozen = frozen
        self.evaluator = Evaluator(self.network, step.device, course.plan, scoring, saving.run, listener)
        self._phase: int | None = None
        state = nn.ModuleDict({"network": step.network, "weighting": step.weighting, "penalties": step.penalties})
        if course.average is not None:
            state["average"] = course.average
        self.checkpoints = Checkpoints(saving.run.paths.checkpoints, state, step.optimizer, saving.settings)
        self.progress = Progress()
        self._saved_at = -1

    def fit(self) -> Progress:
        """Train, evaluate and write checkpoints until the plan ends or early stopping applies."""
        self._restore()
        progress = self.progress
        self.listener.started(progress, self.plan.steps)
        clock, cpu = time.perf_counter(), time.process_time()
        with stop_requests(echoes=self.processes.count > 1) as asked_to_stop:
            while True:
                if progress.step in self.plan.evaluations and self._not_yet_evaluated():
                    self._enter_phase(self.plan.phase(max(progress.step - 1, 0)))
                    self._evaluate(progress.seconds + time.perf_counter() - clock)
                must_stop = self.processes.any(asked_to_stop())
                if progress.step != self._saved_at and (self._is_due_for_checkpoint() or must_stop):
                    now, cpu_now = time.perf_counter(), time.process_time()
                    progress.seconds, clock = progress.seconds + now - clock, now
                    progress.cpu_seconds, cpu = progress.cpu_seconds + cpu_now - cpu, cpu_now
                    self._checkpoint()
                # a collective operation after every checkpoint: no process exits while rank 0 writes it
                has_waited_enough = self.processes.any(self._has_waited_enough())
                if progress.step == self.plan.steps or has_waited_enough:
                    break
                if must_stop:
                    raise Interrupted
                self._advance(progress.seconds + time.perf_counter() - clock)
        if self.processes.leads and self.scoring.samples:
            before = progress.seconds
            if self.frozen is not None:  # the best model may have another body than the last phase
                self.frozen.detach()
            self.evaluator.finish(progress, lambda: before + time.perf_counter() - clock)
            progress.seconds = before + time.perf_counter() - clock
        return progress

    def _advance(self, seconds: float) -> None:
        progress = self.progress
        window = self.plan.window(progress.step)
        lr = self.course.rates(progress.step)
        self._enter_phase(self.plan.phase(progress.step))
        if not self.network.training:
            self.network.train()
        if progress.step + 1 < self.plan.steps:
            self.step.prepare(self.plan.window(progress.step + 1))
        report = self.step(window, lr, self.course.rates.share(progress.step))
        progress.step += 1
        if self.course.average is not None:
            self.course.average.update(progress.step)
        progress.tokens += report.tokens
        self.run.log(
            StepRecord(
                step=progress.step,
                epoch=self.plan.epoch(window.step),
                losses=report.losses,
                regularizers=report.terms,
                lr=lr,
                norm=report.norm,
                tokens=report.tokens,
                weights=report.slopes,
                rows=_fingerprint(window),
                seconds=round(seconds, 3),
            )
        )
        if report.conflicts is not None:
            self.run.log(ConflictsRecord(step=progress.step, **vars(report.conflicts)))
        self.listener.stepped(progress.step, report, seconds)

    def _enter_phase(self, number: int) -> None:
        if number == self._phase:
            return
        set_trainable(self.network, self.course.modes[number])
        self.step.ahead.forget()
        for note in self.frozen.enter(number) if self.frozen is not None else ():
            self.listener.noted(note)
        self._phase = number

    def _evaluate(self, seconds: float) -> None:
        if not self.processes.leads:
            return
        with nullcontext() if self.course.average is None else self.course.average.applied():
            self.evaluator.evaluate(self.progress, seconds)

    def _checkpoint(self) -> None:
        self._saved_at = self.progress.step
        if not self.processes.leads:
            return
        self.progress.metrics_bytes = self.run.metrics_size()
        self.progress.loss_scale = self.step.scaler.state_dict()
        self.checkpoints.save(self.progress)

    def _restore(self) -> None:
        with self.processes.agreement():
            found, warnings = self.checkpoints.load_latest()
            for warning in warnings:
                self.listener.noted(warning)
            if found is not None:
                self.progress = found
                self.step.scaler.load_state_dict(found.loss_scale)
                self._saved_at = found.step
            if self.processes.leads:
                self.run.cut_metrics(self.progress.metrics_bytes)
        steps = self.processes.each(self.progress.step)
        if len(set(steps)) > 1:
            with self.processes.agreement():
                raise RunError(
                    f"{self.run.paths.checkpoints}: the processes of this run found different checkpoints "
                    f"(steps {', '.join(map(str, steps))}, by process); "
                    "the run folder must be on a disk that all processes share"
                )

    def _not_yet_evaluated(self) -> bool:
        """Whether the current step lacks its evaluation. A checkpoint is written after it, so a resumed run has it."""
        return self.progress.step != self._saved_at

    def _is_due_for_checkpoint(self) -> bool:
        step = self.progress.step
        due = step in self.plan.epoch_ends or step == self.plan.steps or step % self.saving.every_steps == 0
        return due and step > 0

    def _has_waited_enough(self) -> bool:
        return self.scoring.patience is not None and self.progress.waited >= self.scoring.patience


def _fingerprint(window: Window) -> str:
    """Return a checksum of the rows of a step: equal runs log equal checksums."""
    check = 0
    for part in window.parts:
        check = zlib.crc32(part.rows.tobytes(), zlib.crc32(part.task.encode(), check))
    return f"{check:08x}"


@contextmanager
def stop_requests(*, echoes: bool = False) -> Iterator[Callable[[], bool]]:
    """Handle Ctrl-C and SIGTERM: the first stops the loop after the current step, the second stops it immediately.

    With `echoes`, a signal within `ECHO_SECONDS` is a duplicate: torchrun forwards signals that the terminal has sent
    to all processes already.
    """
    asked: list[float] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        if asked and echoes and time.monotonic() - asked[0] < ECHO_SECONDS:
            return
        if asked:
            previous = before[number]
            if callable(previous):
                previous(number, frame)
            else:
                raise KeyboardInterrupt
        asked.append(time.monotonic())

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    except ValueError:
        pass  # signal handlers can only be set in the main thread
    try:
        yield lambda: bool(asked)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
