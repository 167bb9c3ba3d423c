"""Where shards are answered: here, one after the other, or on a cluster (`on_ray.py`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.inference.bulk.formats import Format
from weft.inference.bulk.texts import Block
from weft.inference.bulk.work import Work
from weft.inference.model import Model


@dataclass(frozen=True)
class Shard:
    number: int
    block: Block


@dataclass(frozen=True)
class Answerer:
    """Makes a shard's part of its rows."""

    model: Model
    work: Work
    format: Format

    def __call__(self, block: Block) -> bytes:
        return self.format.part(self.work.table(self.model, block))


class BulkExecutor(ABC):
    """Shards are independent: their parts may come in any order. No more are taken than are worked on."""

    @abstractmethod
    def parts(self, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
        """Each shard's number and what its part file holds."""


class LocalBulkExecutor(BulkExecutor):
    """In this process."""

    def __init__(self, answer: Answerer) -> None:
        self.answer = answer

    def parts(self, shards: Iterable[Shard]) -> Iterator[tuple[int, bytes]]:
        for shard in shards:
            yield shard.number, self.answer(shard.block)
