"""One optimizer step on one window."""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from weft.data.dataset import Dataset
from weft.foundation.config import Config
from weft.foundation.errors import RunError
from weft.foundation.randomness import derive, seeded
from weft.foundation.values import Batch, DistinctTexts, Part, Window
from weft.penalties.base import OutputPenalty, WeightPenalty
from weft.tasks.network import Network
from weft.training.distributed import SOLO, Processes
from weft.training.methods import Methods, Numerics
from weft.training.per_task import ApartGradients, Conflicts
from weft.training.prefetch import Ahead

Place = tuple[int | str, ...]
"""identifies a forward pass: step, micro-batch, task or "all", and the process if it is not rank 0"""


@dataclass(frozen=True)
class StepReport:
    """The measurements of a step."""

    losses: dict[str, float]
    """each task's unweighted loss, averaged over its rows or words in the window, without the regularizer's term"""
    terms: dict[str, float]
    """the weighted regularizer term of each task that has one, averaged likewise"""
    tokens: int
    """tokens that went through the body; a sequence that several tasks share counts once"""
    norm: float
    """norm of the gradient, before clipping"""
    slopes: dict[str, float]
    """factor of the weighting on each task's gradient"""
    conflicts: Conflicts | None = None
    """cosine similarities between task gradients, on the steps that log them"""


class LogConfig(Config):
    """Optional measurements in the log of a run."""

    conflicts_every: int | None = Field(default=None, ge=1)
    """Log the cosine similarity between task gradients every N steps. Defaults to never."""
    conflicts_by_layer: bool = False
    """Whether to also log it for each layer of the body."""
    train_rows: int = Field(default=64, ge=0)
    """Train rows per task that every evaluation scores in addition to the dev rows, to show overfitting. 0 for none."""

    @model_validator(mode="after")
    def _layers_need_conflicts(self) -> "LogConfig":
        if self.conflicts_by_layer and self.conflicts_every is None:
            raise ValueError("conflicts_by_layer needs conflicts_every")
        return self


@dataclass
class Totals:
    """Accumulated results of a window's passes."""

    losses: Tensor
    """[m] each task's loss: the mean over all of its rows, or their words, in the window"""
    terms: Tensor
    """[m] each task's regularizer term, averaged likewise"""
    tokens: int = 0
    """tokens processed"""


class Step:
    """forward -> losses -> weighting -> backward -> clipping -> optimizer"""

    def __init__(
        self,
        network: Network,
        datasets: Mapping[str, Dataset],
        optimizer: torch.optim.Optimizer,
        methods: Methods,
        numerics: Numerics,
        *,
        seed: int,
        log: LogConfig | None = None,
        processes: Processes = SOLO,
    ) -> None:
        self.network = network
        self.ahead = Ahead(datasets)
        self.optimizer = optimizer
        self.methods = methods
        self.weighting = methods.weighting
        self.numerics = numerics
        self.device = numerics.device
        self.seed = seed
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        # fp16 gradients underflow unless the loss is scaled up; on overflow the scaler skips the step.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=numerics.precision == "fp16")
        self.processes = processes
        self.apart = ApartGradients(network, methods.layer_factors, processes)
        self.log = log or LogConfig()
        self.penalties = nn.ModuleList(methods.penalties)
        self.on_weights = [penalty for penalty in methods.penalties if isinstance(penalty, WeightPenalty)]
        self.on_outputs = [penalty for penalty in methods.penalties if isinstance(penalty, OutputPenalty)]
        for penalty in methods.penalties:
            penalty.prepare(network)
        # it is faster only on CPU, and only lookups of this process may add to a kept gradient
        alone = not methods.penalties and processes.count == 1
        network.body.embeddings.tokens.keeps_gradient = alone and self.device.type == "cpu"

    def __call__(self, window: Window, rate: float, share: float = 1.0) -> StepReport:
        """Make an optimizer step. `rate` is the phase's learning rate at this step, `share` its share of the peak."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"] if group["peak"] is None else share * group["peak"]
        self.weighting.prepare(derive(self.seed, window.step, "all", "weighting"))
        slopes = self.weighting.slopes(window.tasks, next(self.network.parameters()))
        self.optimizer.zero_grad(set_to_none=True)
        conflicts, totals = self._conflicts(window, slopes), self._gradients(window, slopes)
        if self.methods.keep_apart:
            conflicts = self._measure() if self._is_logged(window) else None
            with seeded(self.seed, window.step, "all", "surgery"):
                self.apart.combine(self.methods.surgery)
            self.apart.forget()
        self._penalize()
        trains = any(p.grad is not None for p in self.parameters)  # the scaler rejects a step without any gradient
        if trains:
            self.scaler.unscale_(self.optimizer)
        # Without clipping the norm is only measured. A non-finite norm stops the run before any weight changes.
        norm = self._clipped_norm()
        self._stop_on_bad_numbers(window, totals, norm)
        if trains:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.weighting.observe(totals.losses, window.tasks)
        for penalty in (*self.on_weights, *self.on_outputs):
            penalty.after_step(self.network)
        losses, terms, weights = (
            dict(zip(window.tasks, numbers.tolist(), strict=True)) for numbers in (totals.losses, totals.terms, slopes)
        )
        terms = {task: term for task, term in terms.items() if self.network.task(task).regularizer is not None}
        return StepReport(losses, terms, totals.tokens, norm, weights, conflicts)

    def prepare(self, window: Window) -> None:
        """Prefetch the batches of the next window while the current one is computed."""
        self.ahead.prepare(self.processes.share(window))

    def _gradients(self, window: Window, slopes: Tensor) -> Totals:
        """Compute the window's gradient on all parameters; return its accumulated losses, terms and tokens.

        With per-task gradients, those of the body are in `self.apart`. A weighting that learns or has state sees the
        unweighted losses: a regularizer's term is scaled with its task's loss, but is not part of it.
        """
        totals = Totals(torch.zeros_like(slopes), torch.zeros_like(slopes))
        if self.methods.keep_apart:
            self._backward_apart(window, slopes, totals)
        else:
            for parts in self.processes.share(window).micros:
                for who, group in self._groups(parts):
                    self._backward(window, group, who, slopes, totals)
        self._over_all_processes(totals)
        if any(parameter.requires_grad for parameter in self.weighting.parameters()):
            own = self.weighting(totals.losses, window.tasks).sum()
            self.scaler.scale(own).backward()  # gradients of the weighting's parameters need all losses
        return totals

    def _over_all_processes(self, totals: Totals) -> None:
        """Sum losses, tokens and gradients over processes; per-task gradients on the body are summed already."""
        apart = self.methods.keep_apart
        named = self.network.task_parameters() if apart else list(self.network.named_parameters())
        self.processes.sum_gradients([p for _, p in named if p.requires_grad])
        tokens = totals.losses.new_tensor([totals.tokens], dtype=torch.float64)
        numbers = torch.cat([totals.losses.double(), totals.terms.double(), tokens])
        self.processes.sum(numbers)
        totals.losses, totals.terms = (part.to(totals.losses) for part in numbers[:-1].chunk(2))
        totals.tokens = int(numbers[-1])

    def _backward_apart(self, window: Window, slopes: Tensor, totals: Totals) -> None:
        """Run the backward pass task by task and collect the per-task gradients on the body."""
        parts = self.processes.share(window).parts
        self.apart.reserve(len(window.tasks))
        for task in window.tasks:
            for part in parts:
                if part.task == task:
                    self._backward(window, [part], task, slopes, totals)
            self.apart.collect(task)

    def _backward(self, window: Window, parts: list[Part], who: str, slopes: Tensor, totals: Totals) -> None:
        """Run one forward and backward pass; add its losses, terms and tokens to `totals`."""
        batches = [self.ahead.batch(window.step, part) for part in parts]
        distinct = self.network.distinct(batches).to(self.device)
        batches = [batch.to(self.device) for batch in batches]
        place: Place = (window.step, parts[0].micro, who, *self.processes.own)
        with self._autocast():
            embedded, outputs = self._forward(self.network, distinct, batches, place)
            losses = [self._losses(window, *one) for one in zip(parts, batches, outputs, strict=True)]
            terms = []
            if self._is_regularized(parts):
                terms.append(self._regularize(batches[0], distinct, place, embedded, outputs[0]))
            penalty = self._penalize_outputs(window, distinct, batches, place, outputs)
        shares = self._shares(window, batches, losses)
        extra = self._shares(window, batches[: len(terms)], terms)
        loss = ((shares + extra) * slopes).sum() + penalty
        if loss.requires_grad:  # false for a frozen body with a head without parameters
            self.scaler.scale(loss).backward()
        totals.losses += shares.detach()
        totals.terms += extra.detach()
        totals.tokens += len(distinct.encoded.ids)

    def _losses(self, window: Window, part: Part, batch: Batch, output: Tensor) -> Tensor:
        """[n] loss of each row: `(1 - weight) label loss + weight distillation loss` if its task has teachers. A row
        without a label has no label loss; teachers predict all such rows."""
        distillation = self.methods.distillation
        if distillation is None or batch.teacher is None:
            return self._label_losses(window, part, batch, output)
        weight = distillation.weight(window.step, part.task)
        taught = self.network.task(batch.task).imitation(output, batch.teacher, distillation.temperature)
        if weight == 1:
            return taught
        share = (1 - weight) * (1 if batch.labelled is None else batch.labelled)
        return share * self._label_losses(window, part, batch, output) + weight * taught

    def _label_losses(self, window: Window, part: Part, batch: Batch, output: Tensor) -> Tensor:
        """[n] label loss of each row of this process. A loss that gathers sees the rows of all processes.

        A batch with fewer rows than processes is not gathered: some processes have no row of it and do not take part.
        """
        task = self.network.task(part.task)
        if not task.loss.gathers or window.rows_of(part.task, part.micro) < self.processes.count:
            return task.losses(output, batch.target, batch.words)
        outputs, own = self.processes.gather(output)
        targets, _ = self.processes.gather(batch.target)
        return task.losses(outputs, targets)[own]

    def _forward(
        self, network: Network, distinct: DistinctTexts, batches: list[Batch], place: Place
    ) -> tuple[Tensor, list[Tensor]]:
        """Return embeddings and outputs; the dropout masks depend only on `place`, not on the network."""
        with seeded(self.seed, *place, "embedding dropout"):
            embedded = network.body.embed(distinct.encoded)
        with seeded(self.seed, *place, "dropout", 0):
            return embedded, network.outputs(embedded, distinct, batches)

    def _is_logged(self, window: Window) -> bool:
        every = self.log.conflicts_every
        return every is not None and window.step % every == 0 and len(window.tasks) > 1

    def _conflicts(self, window: Window, slopes: Tensor) -> Conflicts | None:
        """Measure conflicts in separate passes, without side effects, if the update uses one pass for all tasks."""
        if self.methods.keep_apart or not self._is_logged(window):
            return None
        self._backward_apart(window, slopes, Totals(torch.zeros_like(slopes), torch.zeros_like(slopes)))
        found = self._measure()
        self.apart.forget()
        self.optimizer.zero_grad(set_to_none=True)  # the heads have accumulated gradients too
        return found

    def _measure(self) -> Conflicts:
        scale = self.scaler.get_scale()  # 1 unless fp16
        return self.apart.conflicts(by_layer=self.log.conflicts_by_layer, scale=scale)

    def _groups(self, parts: list[Part]) -> list[tuple[str, list[Part]]]:
        """Group all tasks in one pass, except those with a regularizer, which repeats a task's pass with its masks."""
        together: list[Part] = []
        alone: list[tuple[str, list[Part]]] = []
        for part in parts:
            if self._is_regularized([part]):
                alone.append((part.task, [part]))
            else:
                together.append(part)
        return ([("all", together)] if together else []) + alone

    def _is_regularized(self, parts: list[Part]) -> bool:
        """Whether a pass over these parts has a regularizer's term; its task is then the only one in the pass."""
        return self.network.task(parts[0].task).regularizer is not None

    def _regularize(
        self, batch: Batch, distinct: DistinctTexts, place: Place, embedded: Tensor, output: Tensor
    ) -> Tensor:
        """[n] compute the regularizer's term of each row of a task."""
        task = self.network.task(batch.task)
        assert task.regularizer is not None

        def run(embedded: Tensor, draw: int) -> Tensor:
            with seeded(self.seed, *place, "dropout", draw):
                return self.network.outputs(embedded, distinct, [batch])[0]

        with seeded(self.seed, *place, "regularizer"):
            term: Tensor = task.regularizer(run, embedded, output, task.divergence.of(batch.words))
        return term

    def _penalize_outputs(
        self, window: Window, distinct: DistinctTexts, batches: list[Batch], place: Place, outputs: list[Tensor]
    ) -> Tensor:
        """Compute the contribution of these rows to the output penalties, which compare with an earlier model."""
        total = next(self.network.parameters()).new_zeros(())
        for penalty in self.on_outputs:
            with torch.no_grad():
                _, earlier = self._forward(penalty.earlier(self.network), distinct, batches, place)
            distances = [
                penalty(output, before, self.network.task(batch.task).divergence.of(batch.words))
                for batch, output, before in zip(batches, outputs, earlier, strict=True)
            ]
            total = total + self._shares(window, batches, distances).sum()
        return total

    def _shares(self, window: Window, batches: list[Batch], losses: list[Tensor]) -> Tensor:
        """[m] contribution of these batches to each task's loss: the sum over rows / the task's units in the window."""
        zero = next(self.network.parameters()).new_zeros(())
        shares = dict.fromkeys(window.tasks, zero)
        for batch, own in zip(batches, losses, strict=True):
            shares[batch.task] = shares[batch.task] + own.sum().to(zero.dtype) / self.ahead.units(window, batch.task)
        return torch.stack(list(shares.values()))

    def _penalize(self) -> None:
        """Add the gradients of the weight penalties, after the tasks' gradients have been combined."""
        for penalty in self.on_weights:
            cost: Tensor = penalty(self._training())
            if cost.requires_grad:  # false in a phase that trains no penalized weight
                self.scaler.scale(cost).backward()

    def _clipped_norm(self) -> float:
        """Clip the gradient to norm `clip`; return its norm before clipping."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.numerics.clip is not None:
            nn.utils.clip_grads_with_norm_(self.parameters, self.numerics.clip, norm)
        return float(norm)

    def _training(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, p) for name, p in self.network.named_parameters() if p.requires_grad]

    def _autocast(self) -> AbstractContextManager[object]:
        mixed = self.numerics.mixed
        return torch.autocast(self.device.type, mixed) if mixed is not None else nullcontext()

    def _stop_on_bad_numbers(self, window: Window, totals: Totals, norm: float) -> None:
        objectives = (totals.losses + totals.terms).tolist()
        bad = [task for task, loss in zip(window.tasks, objectives, strict=True) if not math.isfinite(loss)]
        if not bad and (math.isfinite(norm) or self.scaler.is_enabled()):
            return
        what = f"the loss of {', '.join(bad)}" if bad else "the gradient"
        rows = {part.task: part.rows.tolist() for part in window.parts if not bad or part.task in bad}
        raise RunError(
            f"step {window.step + 1}: {what} is not a finite number; no weight of this step was changed. "
            f'A lower optimizer.lr, optimizer.clip or precision = "fp32" may help. Rows in the step: {rows}'
        )
