"""Shards on Ray: on the cluster that RAY_ADDRESS names, or on one that is started on this machine."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from weft.bulk.executors import Answerer, Executor, Shard
from weft.bulk.formats import Format
from weft.bulk.texts import Sides
from weft.bulk.work import Work
from weft.errors import RunError, UserError
from weft.model import load

RETRIES = 2
"""how often a worker that died is started again, and its shard with it"""


class Worker:
    """Loads the model once and answers shard after shard."""

    def __init__(self, folder: Path, device: str, work: Work, form: Format, threads: int) -> None:
        torch.set_num_threads(threads)
        self.answerer = Answerer(load(folder, device), work, form)

    def answer(self, texts: Sides) -> bytes:
        return self.answerer(texts)


class OnRay(Executor):
    """As many workers as fit, each with as many threads as torch has here: equal sums, so equal bytes."""

    def __init__(self, folder: Path, device: str, work: Work, form: Format) -> None:
        try:
            import ray
        except ImportError:
            raise UserError('--executor ray: needs Ray; run: pip install "weft[cluster]"') from None
        self.ray: Any = ray
        self.threads = torch.get_num_threads()
        self.gpus = int(device.startswith("cuda"))
        self.arguments = folder.resolve(), device, work, form, self.threads

    def parts(self, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
        ray = self.ray
        ours = not ray.is_initialized()
        if ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(log_to_driver=False, logging_level="error")
        try:
            yield from self._parts(shards)
        except ray.exceptions.RayTaskError as error:
            raise RunError(f"a worker on Ray failed: {error.cause}") from None
        except ray.exceptions.RayError as error:
            raise RunError(f"Ray lost a worker: {str(error).strip().splitlines()[0]}") from None
        finally:
            if ours:
                ray.shutdown()

    def _parts(self, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
        """A worker gets its next shard when it has given back the last one."""
        most = self._room()
        busy: dict[Any, tuple[int, Any]] = {}
        for shard in shards:
            if len(busy) < most:
                worker = self._start()
            else:
                number, worker, part = self._next(busy)
                yield number, part
            busy[worker.answer.remote(shard.texts)] = shard.number, worker
        while busy:
            number, _, part = self._next(busy)
            yield number, part

    def _next(self, busy: dict[Any, tuple[int, Any]]) -> tuple[int, Any, bytes]:
        done, _ = self.ray.wait(list(busy), num_returns=1)
        number, worker = busy.pop(done[0])
        return number, worker, self.ray.get(done[0])

    def _room(self) -> int:
        """Workers that the cluster has room for, at least one."""
        has = self.ray.cluster_resources()
        rooms = [has.get("CPU", 1) // self.threads] + ([has.get("GPU", 0)] if self.gpus else [])
        return max(1, int(min(rooms)))

    def _start(self) -> Any:
        kind = self.ray.remote(Worker)
        options = {"num_cpus": self.threads, "num_gpus": self.gpus}
        return kind.options(max_restarts=RETRIES, max_task_retries=RETRIES, **options).remote(*self.arguments)
