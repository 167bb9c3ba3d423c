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
from weft.foundation.values import Batch, Encoded, Part, Window
from weft.penalties.base import OutputPenalty, WeightPenalty
from weft.tasks.network import Network
from weft.training.distributed import SOLO, Processes
from weft.training.methods import Methods, Numerics
from weft.training.per_task import ApartGradients, Conflicts
from weft.training.prefetch import Ahead

Place = tuple[int | str, ...]
"""of a forward pass: step, micro-batch, task or "all", and the process unless it is the first"""


@dataclass(frozen=True)
class StepReport:
    """What is worth knowing of a step."""

    losses: dict[str, float]
    """each task's raw loss, averaged over its rows in the window; the regularizer's term is not in it"""
    terms: dict[str, float]
    """the regularizer's term of each task that has one, averaged likewise and weighted by its lambda"""
    tokens: int
    norm: float
    """of the whole gradient, before clipping"""
    slopes: dict[str, float]
    """by what the weighting multiplied each task's gradient"""
    conflicts: Conflicts | None = None
    """how the tasks' gradients lay to each other, on the steps that log it"""


class LogConfig(Config):
    conflicts_every: int | None = Field(default=None, ge=1)
    """log the cosine of every pair of task gradients each so many steps; never unless said"""
    conflicts_by_layer: bool = False
    """log it for each layer of the body too"""
    train_rows: int = Field(default=64, ge=0)
    """train rows of each task that every evaluation scores beside the dev rows, to see overfitting; 0 for none"""

    @model_validator(mode="after")
    def _layers_need_conflicts(self) -> "LogConfig":
        if self.conflicts_by_layer and self.conflicts_every is None:
            raise ValueError("conflicts_by_layer needs conflicts_every")
        return self


@dataclass
class Totals:
    """What the passes of a window add up."""

    losses: Tensor
    """[m] each task's loss: the mean over all of its rows in the window"""
    terms: Tensor
    """[m] likewise, of the regularizers' terms"""
    tokens: int = 0


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
        # it pays on a CPU, and nothing but this process's lookups may add to a kept gradient
        alone = not methods.penalties and processes.count == 1
        network.body.embeddings.tokens.keeps_gradient = alone and self.device.type == "cpu"

    def __call__(self, window: Window, rate: float, share: float = 1.0) -> StepReport:
        """`rate` is the phase's rate at this step, and `share` what part of its highest that is."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"] if group["peak"] is None else share * group["peak"]
        self.weighting.prepare(derive(self.seed, window.step, "all", "weighting"))
        slopes = self.weighting.slopes(window.tasks, next(self.network.parameters()))
        self.optimizer.zero_grad(set_to_none=True)
        conflicts = self._conflicts(window, slopes)
        totals = self._gradients(window, slopes)
        if self.methods.keep_apart:
            conflicts = self._measure() if self._is_logged(window) else None
            with seeded(self.seed, window.step, "all", "surgery"):
                self.apart.combine(self.methods.surgery)
            self.apart.forget()
        self._penalize()
        self.scaler.unscale_(self.optimizer)
        # With no limit the norm is only measured. An infinite or undefined one ends the run before any weight moves.
        norm = self._clipped_norm()
        self._stop_on_bad_numbers(window, totals, norm)
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
        """Make the batches of a coming window while the present one computes."""
        self.ahead.prepare(self.processes.share(window))

    def _gradients(self, window: Window, slopes: Tensor) -> Totals:
        """Leave the window's gradient on the parameters; return what its passes add up.

        If the recipe keeps gradients apart, those of the body are left in `self.apart`. A weighting that learns or
        remembers sees the raw losses: a regularizer's term is scaled with its task's loss, but is no part of it.
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
            self.scaler.scale(own).backward()  # its own parameters, now that the losses are known
        return totals

    def _over_all_processes(self, totals: Totals) -> None:
        """Losses, tokens and gradients of all shares; those on the body are summed already if they are kept apart."""
        module: nn.Module = self.network.tasks if self.methods.keep_apart else self.network
        self.processes.sum_gradients([p for p in module.parameters() if p.requires_grad])
        tokens = totals.losses.new_tensor([totals.tokens], dtype=torch.float64)
        numbers = torch.cat([totals.losses.double(), totals.terms.double(), tokens])
        self.processes.sum(numbers)
        totals.losses, totals.terms = (part.to(totals.losses) for part in numbers[:-1].chunk(2))
        totals.tokens = int(numbers[-1])

    def _backward_apart(self, window: Window, slopes: Tensor, totals: Totals) -> None:
        """Task by task, the body's gradients collected after each."""
        parts = self.processes.share(window).parts
        for task in window.tasks:
            for part in parts:
                if part.task == task:
                    self._backward(window, [part], task, slopes, totals)
            self.apart.collect(task)

    def _backward(self, window: Window, parts: list[Part], who: str, slopes: Tensor, totals: Totals) -> None:
        """One pass through the body and back; adds what it finds to `totals`."""
        batches = [self.ahead.batch(window.step, part).to(self.device) for part in parts]
        place: Place = (window.step, parts[0].micro, who, *self.processes.own)
        with self._autocast():
            embedded, outputs = self._forward(self.network, batches, place)
            losses = [
                self.network.task(batch.task).losses(output, batch.target)
                for batch, output in zip(batches, outputs, strict=True)
            ]
            terms = [self._regularize(batches[0], place, embedded, outputs[0])] if self._is_regularized(parts) else []
            penalty = self._penalize_outputs(window, batches, place, outputs)
        shares = self._shares(window, batches, losses)
        extra = self._shares(window, batches[: len(terms)], terms)
        loss = ((shares + extra) * slopes).sum() + penalty
        if loss.requires_grad:  # with a frozen body, a head without parameters has nothing to learn
            self.scaler.scale(loss).backward()
        totals.losses += shares.detach()
        totals.terms += extra.detach()
        totals.tokens += sum(len(text.ids) for batch in batches for text in batch.texts)

    def _forward(self, network: Network, batches: list[Batch], place: Place) -> tuple[Tensor, list[Tensor]]:
        """What enters the body and what comes out; the place alone decides the dropout masks, whatever the network."""
        encoded = Encoded.join([text for batch in batches for text in batch.texts])
        with seeded(self.seed, *place, "embedding dropout"):
            embedded = network.body.embed(encoded)
        with seeded(self.seed, *place, "dropout", 0):
            return embedded, network.outputs(embedded, encoded, batches)

    def _is_logged(self, window: Window) -> bool:
        every = self.log.conflicts_every
        return every is not None and window.step % every == 0 and len(window.tasks) > 1

    def _conflicts(self, window: Window, slopes: Tensor) -> Conflicts | None:
        """Where the update itself takes one pass for all tasks, the log takes passes of its own and leaves no trace."""
        if self.methods.keep_apart or not self._is_logged(window):
            return None
        self._backward_apart(window, slopes, Totals(torch.zeros_like(slopes), torch.zeros_like(slopes)))
        found = self._measure()
        self.apart.forget()
        self.optimizer.zero_grad(set_to_none=True)  # the heads have gathered gradients too
        return found

    def _measure(self) -> Conflicts:
        scale = self.scaler.get_scale()  # of fp16's losses; 1 otherwise
        return self.apart.conflicts(by_layer=self.log.conflicts_by_layer, scale=scale)

    def _groups(self, parts: list[Part]) -> list[tuple[str, list[Part]]]:
        """All tasks in one pass, but for those with a regularizer: that must repeat their pass mask by mask."""
        together: list[Part] = []
        alone: list[tuple[str, list[Part]]] = []
        for part in parts:
            if self._is_regularized([part]):
                alone.append((part.task, [part]))
            else:
                together.append(part)
        return ([("all", together)] if together else []) + alone

    def _is_regularized(self, parts: list[Part]) -> bool:
        """Whether a pass over these parts has a regularizer's term; its task is then alone in the pass."""
        return self.network.task(parts[0].task).regularizer is not None

    def _regularize(self, batch: Batch, place: Place, embedded: Tensor, output: Tensor) -> Tensor:
        """[n] the regularizer's term of each row of a task."""
        task = self.network.task(batch.task)
        assert task.regularizer is not None
        encoded = Encoded.join(batch.texts)

        def run(embedded: Tensor, draw: int) -> Tensor:
            with seeded(self.seed, *place, "dropout", draw):
                return self.network.outputs(embedded, encoded, [batch])[0]

        with seeded(self.seed, *place, "regularizer"):
            term: Tensor = task.regularizer(run, embedded, output, task.divergence)
        return term

    def _penalize_outputs(self, window: Window, batches: list[Batch], place: Place, outputs: list[Tensor]) -> Tensor:
        """What these rows add to the penalties that compare the outputs with those of an earlier model."""
        total = next(self.network.parameters()).new_zeros(())
        for penalty in self.on_outputs:
            with torch.no_grad():
                _, earlier = self._forward(penalty.earlier(self.network), batches, place)
            distances = [
                penalty(output, before, self.network.task(batch.task).divergence)
                for batch, output, before in zip(batches, outputs, earlier, strict=True)
            ]
            total = total + self._shares(window, batches, distances).sum()
        return total

    def _shares(self, window: Window, batches: list[Batch], losses: list[Tensor]) -> Tensor:
        """[m] what these batches add to each task's loss: a sum over rows, divided by all of the task's rows."""
        zero = next(self.network.parameters()).new_zeros(())
        shares = dict.fromkeys(window.tasks, zero)
        for batch, own in zip(batches, losses, strict=True):
            shares[batch.task] = shares[batch.task] + own.sum().to(zero.dtype) / window.count(batch.task)
        return torch.stack(list(shares.values()))

    def _penalize(self) -> None:
        """What belongs to no task comes after the tasks' gradients have been combined."""
        for penalty in self.on_weights:
            cost: Tensor = penalty(self._training())
            if cost.requires_grad:  # not in a phase where nothing that pays is trained
                self.scaler.scale(cost).backward()

    def _clipped_norm(self) -> float:
        """The norm of the whole gradient, before it is cut to `clip`."""
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
