"""Data-parallel training with `torch.distributed`. All code for several processes is in this module.

All ranks have the same plan: each rank takes its share of the rows of every batch, losses and gradients are summed over
ranks, and every rank makes the same optimizer step. A task's loss is a sum over rows, divided by the number of the
task's rows in the window, so shares can be unequal or empty. Only rank 0 evaluates, writes files and prints.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.autograd import Function
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from weft.foundation.errors import LostProcess, RunError, ToldElsewhere, UserError
from weft.foundation.values import Window

START = timedelta(minutes=10)
"""timeout for all processes to join"""
WAIT = timedelta(days=1)
"""timeout of a collective operation: the other ranks wait in one while rank 0 evaluates or writes"""
MESSAGE_BYTES = 8192
"""maximum size of an error message that ranks exchange"""


class Processes(ABC):
    """The processes of a run, from the view of this process."""

    count: int = 1
    """world size"""
    rank: int = 0
    """number of this process"""
    leads: bool = True
    """whether this is rank 0, which evaluates, writes files and prints"""
    own: tuple[str, ...] = ()
    """added to the seeds of this process, so that ranks draw different random numbers; empty for rank 0"""

    @abstractmethod
    def device(self, chosen: torch.device) -> torch.device:
        """Return the device of this process, given the type of device that the user has chosen."""

    @abstractmethod
    def share(self, window: Window) -> Window:
        """Return this process's rows of a window; parts without rows are left out."""

    @abstractmethod
    def sum(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes (all-reduce)."""

    @abstractmethod
    def any(self, flag: bool) -> bool:
        """Whether the flag is true in any process. Blocks until all processes have called it."""

    @abstractmethod
    def each(self, number: int) -> list[int]:
        """Return the number of every process, by rank (all-gather)."""

    @abstractmethod
    def gather(self, rows: Tensor) -> tuple[Tensor, slice]:
        """Return the rows of all processes, by rank, and the place of this process's rows among them.

        Gradients flow back to the process that a row belongs to.
        """

    @abstractmethod
    @contextmanager
    def agreement(self) -> Iterator[None]:
        """Propagate an error in one process to all; only rank 0 reports it."""
        yield

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum gradients in one buffer. A parameter without a gradient in any process keeps none: it must not decay."""
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
    """A single process."""

    def device(self, chosen: torch.device) -> torch.device:
        return chosen

    def share(self, window: Window) -> Window:
        return window

    def sum(self, tensor: Tensor) -> None:
        """Leave the tensor unchanged."""

    def any(self, flag: bool) -> bool:
        return flag

    def each(self, number: int) -> list[int]:
        return [number]

    def gather(self, rows: Tensor) -> tuple[Tensor, slice]:
        return rows, slice(0, len(rows))

    @contextmanager
    def agreement(self) -> Iterator[None]:
        yield


class Gathered(Function):
    """The rows of all processes. The gradient of a row is the sum of the gradients that all processes have for it."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, total: int, own: slice, add_up: Callable[[Tensor], None]) -> Tensor:
        ctx.own, ctx.add_up = own, add_up
        whole = rows.new_zeros(total, *rows.shape[1:])
        whole[own] = rows
        add_up(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        total = gradient.contiguous().clone()
        ctx.add_up(total)
        return total[ctx.own], None, None, None


class ProcessGroup(Processes):
    """Several processes, connected with gloo on CPUs and with NCCL on GPUs (NCCL is untested)."""

    def __init__(self, kind: str) -> None:
        """`kind` is cpu or cuda. Rank and world size come from torchrun's environment variables."""
        self.rank, self.count = _placed(kind)
        self.leads = self.rank == 0
        self.own = () if self.leads else (f"process {self.rank}",)
        self.here = (
            torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device("cpu")
        )
        if kind == "cuda":
            torch.cuda.set_device(self.here)
        self._together(lambda: self._meet("nccl" if kind == "cuda" else "gloo"))

    def _meet(self, backend: str) -> None:
        """Initialize the process group. torchrun's store keeps the keys of a script's earlier runs, so each run has a
        separate prefix."""
        store, *_ = next(rendezvous("env://", timeout=START))
        own = PrefixStore(f"weft/{next(_RUNS)}", store)
        present, deadline = own.add("present", 1), time.monotonic() + START.total_seconds()
        while present < self.count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{present} of {self.count} joined within {START.total_seconds() / 60:g} minutes")
            time.sleep(0.05)
            present = own.add("present", 0)
        distributed.init_process_group(backend, store=own, rank=self.rank, world_size=self.count, timeout=WAIT)

    def close(self) -> None:
        """Destroy the process group."""
        with suppress(RuntimeError):  # other processes may have exited
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

    def each(self, number: int) -> list[int]:
        numbers = torch.zeros(self.count, dtype=torch.int64, device=self.here)
        numbers[self.rank] = number
        self.sum(numbers)
        found: list[int] = numbers.tolist()
        return found

    def gather(self, rows: Tensor) -> tuple[Tensor, slice]:
        sizes = self.each(len(rows))
        start = sum(sizes[: self.rank])
        own = slice(start, start + len(rows))
        gathered: Tensor = Gathered.apply(rows, sum(sizes), own, self.sum)  # type: ignore[no-untyped-call]
        return gathered, own

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
        """Return the error message of every process, by rank; empty for processes without an error."""
        words = f"{type(error).__name__}:{error}".encode()[:MESSAGE_BYTES] if error else b""
        table = torch.zeros(self.count, MESSAGE_BYTES, dtype=torch.int32, device=self.here)
        table[self.rank, : len(words)] = torch.tensor(list(words), dtype=torch.int32, device=self.here)
        self.sum(table)
        return [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in table.tolist()]

    def _together(self, act: Callable[[], object]) -> None:
        """Run a collective operation; raise LostProcess if another process has exited."""
        try:
            act()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise LostProcess(
                f"process {self.rank} of {self.count}: another process of this run has exited ({reason}), so this one "
                "exits too. If that process printed an error message, it gives the cause. Checkpoints that were "
                "written are intact: continue with --resume, with any number of processes"
            ) from None


SOLO = Solo()
_RUNS = count(1)
"""counts the runs that this process joins"""


def _placed(kind: str) -> tuple[int, int]:
    """Return rank and world size; raise UserError if torchrun's environment variables are missing or invalid."""
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise UserError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, as if torchrun had started several processes, but "
            f"{', '.join(missing)} is not set; start with torchrun, or unset WORLD_SIZE"
        )
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if kind == "cuda" and here > torch.cuda.device_count():
        raise UserError(
            f"{here} processes on a machine with {torch.cuda.device_count()} GPUs: each process needs its own GPU; "
            f"use --nproc-per-node {torch.cuda.device_count()}, or --device cpu"
        )
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def share_of(window: Window, rank: int, count: int) -> Window:
    """Take every `count`-th row that was drawn, starting at row `rank`; parts without rows are left out.

    All tasks that ask about a row of a source have it in the same process, where it goes through the body once.
    """
    parts = [part.only(part.places % count == rank) for part in window.parts]
    return Window(window.step, tuple(part for part in parts if len(part.rows)))


@contextmanager
def join(device: str) -> Iterator[Processes]:
    """Join the process group described by torchrun's environment variables; without them, run in a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SOLO
        return
    if device.startswith("cuda:"):
        raise UserError(
            f"--device {device}: each of several processes uses a GPU of its own; use --device cuda, and choose GPUs "
            "with the environment variable CUDA_VISIBLE_DEVICES"
        )
    on_gpu = torch.cuda.is_available() and (device == "auto" or device.startswith("cuda"))
    group = ProcessGroup("cuda" if on_gpu else "cpu")  # a missing GPU is rejected later, as for one process
    try:
        yield group
        group.any(False)  # a barrier: no process closes the group while another still uses it
    finally:
        group.close()
