"""One optimizer step on one window."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.data.dataset import Dataset
from weft.errors import RunError
from weft.randomness import seeded
from weft.tasks.network import Network
from weft.training.apart import ApartGradients
from weft.types import Batch, Part, Window
from weft.weighting.base import Weighting


@dataclass(frozen=True)
class StepReport:
    """What is worth knowing of a step."""

    losses: dict[str, float]
    """each task's raw loss, averaged over its rows in the window"""
    tokens: int
    norm: float
    """of the whole gradient, before clipping"""


class Step:
    """forward -> losses -> weighting -> backward -> clipping -> optimizer"""

    def __init__(
        self,
        network: Network,
        datasets: Mapping[str, Dataset],
        weighting: Weighting,
        optimizer: torch.optim.Optimizer,
        *,
        clip: float | None,
        seed: int,
        device: torch.device,
        precision: str = "fp32",
        layer_factors: Mapping[str, Mapping[int, float]] | None = None,
    ) -> None:
        """`layer_factors`: task -> layer -> what the task's gradient on that layer is multiplied by."""
        self.network = network
        self.datasets = datasets
        self.weighting = weighting
        self.optimizer = optimizer
        self.clip = clip
        self.seed = seed
        self.device = device
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.mixed = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
        # fp16 gradients underflow unless the loss is scaled up; on overflow the scaler skips the step.
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
        self.apart = ApartGradients(network, layer_factors) if layer_factors else None

    def __call__(self, window: Window, rate: float) -> StepReport:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimizer.zero_grad(set_to_none=True)
        losses, tokens = self._gradients(window)
        self.scaler.unscale_(self.optimizer)
        # With no limit the norm is only measured. An infinite or undefined one ends the run before any weight moves.
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.clip or float("inf")))
        self._stop_on_bad_numbers(window, losses, norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return StepReport(dict(zip(window.tasks, losses.tolist(), strict=True)), tokens, norm)

    def _gradients(self, window: Window) -> tuple[Tensor, int]:
        """Leave the window's gradient on the parameters; return its tasks' losses [m] and number of tokens."""
        tasks = window.tasks
        like = next(self.network.parameters())
        slopes = self.weighting.slopes(tasks, like)
        totals = like.new_zeros(len(tasks))
        tokens = 0
        for parts, is_last_of_task in self._passes(window):
            batches = [self.datasets[part.task].batch(part.rows).to(self.device) for part in parts]
            tokens += sum(len(text.ids) for batch in batches for text in batch.texts)
            who = parts[0].task if self.apart else "all"
            with seeded(self.seed, window.step, parts[0].micro, who, "dropout"), self._autocast():
                shares = self._shares(window, batches)
            loss = (shares * slopes).sum()
            if loss.requires_grad:  # with a frozen body, a head without parameters has nothing to learn
                self.scaler.scale(loss).backward()
            totals += shares.detach()
            if self.apart and is_last_of_task:
                self.apart.collect(parts[0].task)
        if self.apart:
            self.apart.combine()
        if any(parameter.requires_grad for parameter in self.weighting.parameters()):
            own = self.weighting(totals, tasks).sum()
            self.scaler.scale(own).backward()  # its own parameters, now that the losses are known
        return totals, tokens

    def _passes(self, window: Window) -> Iterator[tuple[list[Part], bool]]:
        """The forward passes: all tasks of a micro-batch together, or, if gradients are kept apart, task by task."""
        if not self.apart:
            yield from ((parts, False) for parts in window.micros)
            return
        for task in window.tasks:
            own = [part for part in window.parts if part.task == task]
            yield from (([part], part is own[-1]) for part in own)

    def _shares(self, window: Window, batches: list[Batch]) -> Tensor:
        """[m] what these batches add to each task's loss: a sum over rows, divided by all of the task's rows."""
        shares: dict[str, Tensor] = {}
        for batch, output in zip(batches, self.network(batches), strict=True):
            share = output.losses.sum() / window.count(batch.task)
            shares[batch.task] = shares[batch.task] + share if batch.task in shares else share
        zero = next(self.network.parameters()).new_zeros(())
        return torch.stack([shares[task].to(zero.dtype) if task in shares else zero for task in window.tasks])

    def _autocast(self) -> AbstractContextManager[object]:
        return torch.autocast(self.device.type, self.mixed) if self.mixed is not None else nullcontext()

    def _stop_on_bad_numbers(self, window: Window, losses: Tensor, norm: float) -> None:
        bad = [task for task, loss in zip(window.tasks, losses.tolist(), strict=True) if not _finite(loss)]
        if not bad and (_finite(norm) or self.scaler.is_enabled()):
            return
        what = f"the loss of {', '.join(bad)}" if bad else "the gradient"
        rows = {part.task: part.rows.tolist() for part in window.parts if not bad or part.task in bad}
        raise RunError(
            f"step {window.step + 1}: {what} is not a finite number; no weight of this step was changed. "
            f'A lower optimizer.lr, optimizer.clip or precision = "fp32" may help. Rows in the step: {rows}'
        )


def _finite(value: float) -> bool:
    return value - value == 0.0
