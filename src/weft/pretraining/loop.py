"""The loop of pretraining."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.foundation.errors import Interrupted, RunError
from weft.foundation.randomness import seeded
from weft.foundation.records import from_json
from weft.foundation.values import Encoded
from weft.pretraining.course import MaskedCourse
from weft.pretraining.head import MaskedLanguageHead
from weft.runs.folder import RunFolder
from weft.runs.records import LogRecord
from weft.training.checkpoint import Checkpoints, Progress
from weft.training.loop import stop_requests


@dataclass(frozen=True, kw_only=True)
class MaskedStepRecord(LogRecord):
    """One optimizer step of pretraining."""

    event = "step"
    loss: float
    lr: float
    norm: float
    tokens: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class MaskedEvaluationRecord(LogRecord):
    """Loss on the held-out texts."""

    event = "evaluation"
    loss: float
    """mean cross-entropy of the masked tokens"""
    accuracy: float
    """fraction of the masked tokens whose most probable token is the true one"""


class MaskedLanguageModel(nn.Module):
    """A body with the head of masked-language modelling."""

    def __init__(self, body: Body, head: MaskedLanguageHead) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, encoded: Encoded, positions: Tensor) -> Tensor:
        """[m, v] logits of the tokens at `positions` of packed sequences."""
        states = self.body(encoded, positions)[-1].index_select(0, positions)
        return self.head(states, self.body.embeddings.tokens.weight)  # type: ignore[no-any-return]


class Pretrainer:
    """The loop: evaluate, checkpoint, step."""

    def __init__(
        self,
        model: MaskedLanguageModel,
        course: MaskedCourse,
        run: RunFolder,
        settings: dict[str, Any],
        tell: Callable[[str], None],
    ) -> None:
        config = course.config
        self.model = model
        self.course = course
        self.run = run
        self.tell = tell
        decayed = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=config.lr, fused=True)
        self.checkpoints = Checkpoints(run.paths.checkpoints, model, self.optimizer, settings)
        self.progress = Progress()
        self.evaluations: list[MaskedEvaluationRecord] = []

    @property
    def first(self) -> MaskedEvaluationRecord:
        return self.evaluations[0]

    @property
    def last(self) -> MaskedEvaluationRecord:
        return self.evaluations[-1]

    def fit(self) -> Progress:
        """Train to the last step, from the last checkpoint if there is one."""
        found, warnings = self.checkpoints.load_latest()
        for warning in warnings:
            self.tell(warning)
        self.progress = progress = found or self.progress
        self.run.cut_metrics(progress.metrics_bytes)
        saved_at, clock = progress.step if found else -1, time.perf_counter()
        if found:  # the first and the last evaluation are part of the result
            self.evaluations = self._logged()
        with stop_requests() as asked_to_stop:
            while True:
                step = progress.step
                if step in self.course.evaluations and step != saved_at:
                    self._evaluate()
                is_due = step > 0 and (step == self.course.steps or step % self.course.config.every_steps == 0)
                if step != saved_at and (is_due or asked_to_stop()):
                    now = time.perf_counter()
                    progress.seconds, clock = progress.seconds + now - clock, now
                    progress.metrics_bytes = self.run.metrics_size()
                    self.checkpoints.save(progress)
                    saved_at = step
                if step == self.course.steps:
                    return progress
                if asked_to_stop():
                    raise Interrupted
                self._advance(progress.seconds + time.perf_counter() - clock)

    def _advance(self, seconds: float) -> None:
        progress, config = self.progress, self.course.config
        lr = self.course.rate(progress.step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        batch = self.course.batch(progress.step)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        with seeded(config.seed, progress.step, "pretraining", "dropout"):
            logits = self.model(batch.encoded, batch.positions)
        loss = F.cross_entropy(logits, batch.targets)
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), config.clip))
        if not math.isfinite(norm):
            raise RunError(f"step {progress.step + 1}: the gradient is not a finite number; a lower --lr may help")
        self.optimizer.step()
        progress.step += 1
        progress.tokens += len(batch.encoded.ids)
        record = MaskedStepRecord(
            step=progress.step,
            loss=float(loss.detach()),
            lr=lr,
            norm=norm,
            tokens=len(batch.encoded.ids),
            seconds=round(seconds, 3),
        )
        self.run.log(record)

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        loss, right, count = 0.0, 0, 0
        for batch in self.course.dev_batches():
            logits = self.model(batch.encoded, batch.positions)
            loss += float(F.cross_entropy(logits, batch.targets, reduction="sum").double())
            right += int((logits.argmax(dim=1) == batch.targets).sum())
            count += len(batch.targets)
        record = MaskedEvaluationRecord(step=self.progress.step, loss=loss / count, accuracy=right / count)
        self.evaluations.append(record)
        self.run.log(record)
        self.tell(f"step {record.step:,}: dev loss {record.loss:.4f}, accuracy {record.accuracy:.3f}")

    def _logged(self) -> list[MaskedEvaluationRecord]:
        """Return the evaluations in the log."""
        file = self.run.paths.metrics
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [
            from_json(MaskedEvaluationRecord, record, str(file))
            for record in records
            if record["event"] == MaskedEvaluationRecord.event
        ]
