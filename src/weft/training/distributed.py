"""One run in several processes, on `torch.distributed`; everything that knows of more than one is here.

A plan is the same for all: each process takes its share of the rows of every batch, losses and gradients are summed,
and then every process takes the same optimizer step. A task's loss is a sum over rows, divided by all of the task's
rows in the window, so shares may be unequal or empty. The first process leads: it alone writes, evaluates and speaks.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn

from weft.errors import LostProcess, RunError, ToldElsewhere, UserError
from weft.types import Part, Window

WAIT = timedelta(days=1)
"""for the others: while the first process evaluates or writes they wait in a sum"""
MESSAGE_BYTES = 8192


class Processes(ABC):
    """The processes of a run, as one of them sees them."""

    count: int = 1
    leads: bool = True
    """whether this is the one that writes and speaks"""
    own: tuple[str, ...] = ()
    """what makes this process's random draws its own; nothing for the first"""

    @abstractmethod
    def device(self, chosen: torch.device) -> torch.device:
        """Where this process computes, when the user has chosen a kind of device."""

    @abstractmethod
    def share(self, window: Window) -> Window:
        """This process's rows of a window; parts of which it has none are left out."""

    @abstractmethod
    def sum(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes."""

    @abstractmethod
    def any(self, flag: bool) -> bool:
        """Whether it holds in some process. All wait for the last one to ask."""

    @abstractmethod
    @contextmanager
    def agreement(self) -> Iterator[None]:
        """What is refused in one process is refused in all, and told once."""
        yield

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """In one buffer. A parameter that no process has a gradient on is left without one: it must not even decay."""
        if self.count == 1 or not parameters:
            return
        flags = parameters[0].new_tensor([p.grad is not None for p in parameters])
        pieces = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
        buffer = torch.cat([*pieces, flags])
        self.sum(buffer)
        *sums, flags = buffer.split([p.numel() for p in parameters] + [len(flags)])
        for parameter, total, touched in zip(parameters, sums, flags.tolist(), strict=True):
            parameter.grad = total.view_as(parameter) if touched else None


class Solo(Processes):
    """One process: nothing to share and nobody to wait for."""

    def device(self, chosen: torch.device) -> torch.device:
        return chosen

    def share(self, window: Window) -> Window:
        return window

    def sum(self, tensor: Tensor) -> None:
        """Of one process: the tensor itself."""

    def any(self, flag: bool) -> bool:
        return flag

    @contextmanager
    def agreement(self) -> Iterator[None]:
        yield


class Group(Processes):
    """Several, joined by gloo on CPUs and by NCCL on GPUs (which has not been run yet)."""

    def __init__(self, kind: str) -> None:
        """`kind` is cpu or cuda. Who is who stands in the environment that torchrun sets."""
        self.rank = int(os.environ["RANK"])
        self.count = int(os.environ["WORLD_SIZE"])
        self.leads = self.rank == 0
        self.own = () if self.leads else (f"process {self.rank}",)
        self.here = (
            torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device("cpu")
        )
        if kind == "cuda":
            torch.cuda.set_device(self.here)
        self._together(lambda: distributed.init_process_group("nccl" if kind == "cuda" else "gloo", timeout=WAIT))

    def close(self) -> None:
        with suppress(RuntimeError):  # the others may be gone
            distributed.destroy_process_group()

    def device(self, chosen: torch.device) -> torch.device:
        return self.here if chosen.type == "cuda" else chosen

    def share(self, window: Window) -> Window:
        return share_of(window, self.rank, self.count)

    def sum(self, tensor: Tensor) -> None:
        if tensor.numel():
            self._together(lambda: distributed.all_reduce(tensor))

    def any(self, flag: bool) -> bool:
        flags = torch.tensor([float(flag)], device=self.here)
        self.sum(flags)
        return bool(flags.item())

    @contextmanager
    def agreement(self) -> Iterator[None]:
        mine: UserError | RunError | None = None
        try:
            yield
        except (UserError, RunError) as error:
            mine = error
        said = self._messages(mine)
        if not any(said):
            return
        if not self.leads:
            raise ToldElsewhere
        if mine is not None:
            raise mine
        number, words = next((number, words) for number, words in enumerate(said) if words)
        kind, _, message = words.partition(":")
        raise (UserError if kind == UserError.__name__ else RunError)(f"process {number} of {self.count}: {message}")

    def _messages(self, error: Exception | None) -> list[str]:
        """What every process has to say, by number; empty for those that are content."""
        words = f"{type(error).__name__}:{error}".encode()[:MESSAGE_BYTES] if error else b""
        table = torch.zeros(self.count, MESSAGE_BYTES, dtype=torch.int32, device=self.here)
        table[self.rank, : len(words)] = torch.tensor(list(words), dtype=torch.int32, device=self.here)
        self.sum(table)
        return [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in table.tolist()]

    def _together(self, act: Callable[[], object]) -> None:
        """Something that only works if all processes do it."""
        try:
            act()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise LostProcess(
                f"process {self.rank} of {self.count}: another process of this run is gone ({reason}), so this one "
                "ends too. Its own message, if it had time for one, says why. Checkpoints that were written are "
                "intact: go on with --resume, with any number of processes"
            ) from None


SOLO = Solo()


def share_of(window: Window, rank: int, count: int) -> Window:
    """Every `count`-th row of each part, from row `rank` on; parts without any are left out."""
    parts = [Part(part.task, part.micro, part.rows[rank::count]) for part in window.parts]
    return Window(window.step, tuple(part for part in parts if len(part.rows)))


@contextmanager
def join(device: str) -> Iterator[Processes]:
    """The processes that torchrun (or whoever set its variables) started; one alone unless it did."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SOLO
        return
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    group = Group("cuda" if on_gpu else "cpu")
    try:
        yield group
        group.any(False)  # nobody hangs up while another one still listens
    finally:
        group.close()
