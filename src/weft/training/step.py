"""One optimizer step on one window."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.data.dataset import Dataset
from weft.errors import RunError
from weft.randomness import seeded
from weft.tasks.network import Network
from weft.types import Batch, Window
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
    ) -> None:
        self.network = network
        self.datasets = datasets
        self.weighting = weighting
        self.optimizer = optimizer
        self.clip = clip
        self.seed = seed
        self.device = device
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def __call__(self, window: Window, rate: float) -> StepReport:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        losses, tokens = self._gradients(window)
        # With no limit the norm is only measured. An infinite or undefined one ends the run before any weight moves.
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.clip or float("inf")))
        self._stop_on_bad_numbers(window, losses, norm)
        self.optimizer.step()
        return StepReport(dict(zip(window.tasks, losses.tolist(), strict=True)), tokens, norm)

    def _gradients(self, window: Window) -> tuple[Tensor, int]:
        """Leave the window's gradient on the parameters; return its tasks' losses [m] and number of tokens."""
        tasks = window.tasks
        like = next(self.network.parameters())
        slopes = self.weighting.slopes(tasks, like)
        totals = like.new_zeros(len(tasks))
        tokens = 0
        for micro, parts in enumerate(window.micros):
            batches = [self.datasets[part.task].batch(part.rows).to(self.device) for part in parts]
            tokens += sum(len(text.ids) for batch in batches for text in batch.texts)
            with seeded(self.seed, window.step, micro, "all", "dropout"):
                shares = self._shares(window, batches)
            (shares * slopes).sum().backward()
            totals += shares.detach()
        if any(parameter.requires_grad for parameter in self.weighting.parameters()):
            self.weighting(totals, tasks).sum().backward()  # its own parameters, now that the losses are known
        return totals, tokens

    def _shares(self, window: Window, batches: list[Batch]) -> Tensor:
        """[m] what these batches add to each task's loss: a sum over rows, divided by all of the task's rows."""
        shares: dict[str, Tensor] = {}
        for batch, output in zip(batches, self.network(batches), strict=True):
            share = output.losses.sum() / window.count(batch.task)
            shares[batch.task] = shares[batch.task] + share if batch.task in shares else share
        zero = next(self.network.parameters()).new_zeros(())
        return torch.stack([shares.get(task, zero) for task in window.tasks])

    def _stop_on_bad_numbers(self, window: Window, losses: Tensor, norm: float) -> None:
        bad = [task for task, loss in zip(window.tasks, losses.tolist(), strict=True) if not _finite(loss)]
        if not bad and _finite(norm):
            return
        what = f"the loss of {', '.join(bad)}" if bad else "the gradient"
        rows = {part.task: part.rows.tolist() for part in window.parts if not bad or part.task in bad}
        raise RunError(
            f"step {window.step + 1}: {what} is not a finite number; no weight of this step was changed. "
            f'A lower optimizer.lr, optimizer.clip or precision = "fp32" may help. Rows in the step: {rows}'
        )


def _finite(value: float) -> bool:
    return value - value == 0.0
