"""Executors that process shards: sequentially in this process, or on a cluster (`on_ray.py`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.inference.bulk.formats import Format
from weft.inference.bulk.texts import Block
from weft.inference.bulk.work import Work
from weft.inference.memory import EncodedTexts
from weft.inference.model import Model


@dataclass(frozen=True)
class Shard:
    number: int
    block: Block


@dataclass(frozen=True)
class Answerer:
    """Computes the contents of a shard's part file from its rows."""

    model: Model
    work: Work
    format: Format

    def __call__(self, block: Block) -> bytes:
        return self.format.part(self.work.table(self.model, block))


class BulkExecutor(ABC):
    """Base class of executors. Parts may come in any order. Only shards in progress are held in memory."""

    @abstractmethod
    def parts(self, shards: Iterable[Shard], memory: EncodedTexts | None) -> Iterator[tuple[int, bytes]]:
        """Yield each shard's number and the contents of its part file. What `memory` knows is not computed again."""


class LocalBulkExecutor(BulkExecutor):
    """Processes shards one after the other in this process."""

    def __init__(self, answer: Answerer) -> None:
        self.answer = answer

    def parts(self, shards: Iterable[Shard], memory: EncodedTexts | None) -> Iterator[tuple[int, bytes]]:
        self.answer.model.engine.memory = memory
        for shard in shards:
            yield shard.number, self.answer(shard.block)
