"""Process shards on Ray: on the cluster at RAY_ADDRESS, or on a local cluster started for the job."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from weft.foundation.cluster import connected, import_ray, last_line
from weft.foundation.errors import RunError, UserError
from weft.foundation.own_code import trusts_code
from weft.inference.bulk.executors import Answerer, BulkExecutor, Shard
from weft.inference.bulk.formats import Format
from weft.inference.bulk.texts import Block
from weft.inference.bulk.work import Work
from weft.inference.memory import EncodedTexts
from weft.inference.model import load
from weft.runs.model_folder import model_digest

RETRIES = 2
"""maximum number of restarts of a failed worker, and of retries of its shard"""


class Worker:
    """Ray actor that loads the model once and processes one shard after another."""

    def __init__(
        self,
        chunks: Sequence[bytes],
        folder: Path,
        digest: str,
        device: str,
        work: Work,
        form: Format,
        threads: int,
        trust_code: bool = False,
    ) -> None:
        """`chunks` are those of the driver's memory."""
        torch.set_num_threads(threads)
        model = load(folder, device, trust_code=trust_code)
        if chunks:
            model.engine.memory = EncodedTexts()
            for chunk in chunks:
                model.engine.memory.add(pa.py_buffer(chunk))
        if model_digest(folder) != digest:
            raise RunError(f"{folder}: a worker found another model there; it must not change while it answers")
        self.answerer = Answerer(model, work, form)

    def answer(self, block: Block) -> bytes:
        return self.answerer(block)


class OnRay(BulkExecutor):
    """Runs as many workers as fit. Each uses the local number of torch threads: equal sums, so equal bytes."""

    def __init__(
        self, folder: Path, digest: str, device: str, work: Work, form: Format, trust_code: bool = False
    ) -> None:
        import_ray()
        self.threads = torch.get_num_threads()
        self.gpus = int(device.startswith("cuda"))
        self.arguments = folder.resolve(), digest, device, work, form, self.threads, trusts_code(trust_code)

    def parts(self, shards: Iterable[Shard], memory: EncodedTexts | None) -> Iterator[tuple[int, bytes]]:
        with connected() as ray:
            try:
                chunks = ray.put([chunk.to_pybytes() for chunk in memory.chunks] if memory else [])
                yield from self._parts(ray, shards, chunks)
            except ray.exceptions.RayTaskError as error:
                raise RunError(f"a worker on Ray failed: {error.cause}") from None
            except ray.exceptions.RayError as error:
                raise RunError(f"Ray lost a worker: {last_line(error)}") from None

    def _parts(self, ray: Any, shards: Iterable[Shard], chunks: Any) -> Iterator[tuple[int, bytes]]:
        """Yield finished parts. A worker gets its next shard after it has returned the previous one."""
        most = self._room(ray)
        busy: dict[Any, tuple[int, Any]] = {}
        for shard in shards:
            if len(busy) < most:
                worker = self._start(ray, chunks)
            else:
                number, worker, part = self._next(ray, busy)
                yield number, part
            busy[worker.answer.remote(shard.block)] = shard.number, worker
        while busy:
            number, _, part = self._next(ray, busy)
            yield number, part

    def _next(self, ray: Any, busy: dict[Any, tuple[int, Any]]) -> tuple[int, Any, bytes]:
        done, _ = ray.wait(list(busy), num_returns=1)
        number, worker = busy.pop(done[0])
        return number, worker, ray.get(done[0])

    def _room(self, ray: Any) -> int:
        """Return the number of workers that fit on the cluster's nodes. A worker cannot span several nodes."""
        room = 0
        for node in ray.nodes():
            has = node["Resources"] if node["Alive"] else {}
            rooms = [has.get("CPU", 0) // self.threads] + ([has.get("GPU", 0)] if self.gpus else [])
            room += int(min(rooms))
        if not room:
            raise UserError(
                f"--executor ray: a worker needs {self.threads} processors{' and a GPU' if self.gpus else ''} of one "
                "machine, and no machine of the cluster has that; a smaller OMP_NUM_THREADS makes smaller workers"
            )
        return room

    def _start(self, ray: Any, chunks: Any) -> Any:
        kind = ray.remote(Worker)
        options = {"num_cpus": self.threads, "num_gpus": self.gpus}
        return kind.options(max_restarts=RETRIES, max_task_retries=RETRIES, **options).remote(chunks, *self.arguments)
