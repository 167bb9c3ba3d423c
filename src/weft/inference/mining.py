"""Nearest neighbours, nearest pairs and hard negatives of a file of texts, or of vectors.

Texts are embedded into a file first. Then blocks of rows are searched one by one, and the result of each is saved, so
that an interrupted job continues where it stopped.
"""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.data.splits import first_equal, text_keys
from weft.data.tables import STANDARD, require_writable
from weft.foundation.atomic import replacing, sha256
from weft.foundation.errors import UserError
from weft.foundation.values import Rows
from weft.inference.bulk.formats import choose_format
from weft.inference.bulk.job import BulkJob, BulkListener, stopping_kindly
from weft.inference.bulk.parts import Parts
from weft.inference.bulk.texts import BulkTexts
from weft.inference.bulk.work import Vectors
from weft.inference.model import load
from weft.inference.nearest import QUERIES, Limits, Neighbours, VectorFile, nearest, similarities
from weft.runs.model_folder import model_digest

Mode = Literal["pairs", "neighbours", "negatives"]
MODES = ("pairs", "neighbours", "negatives")
FORMAT = 2


@dataclass(frozen=True)
class MiningOptions:
    """What to look for."""

    mode: Mode = "pairs"
    top_k: int = 10
    """neighbours, or negatives, of each row"""
    min_score: float | None = None
    """minimum cosine similarity"""
    skip: int = 0
    """nearest candidates to skip, for negatives: those that are probably matches"""
    margin: float | None = None
    """minimum distance of a negative's similarity below that of the row's match"""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UserError(f"--mode {self.mode}: expected {', '.join(MODES)}")
        for name, value, least in (("--top-k", self.top_k, 1), ("--skip", self.skip, 0)):
            if value < least:
                raise UserError(f"{name} {value}: expected at least {least}")
        if self.min_score is not None and not -1 <= self.min_score <= 1:
            raise UserError(f"--min-score {self.min_score:g}: expected a cosine similarity, from -1 to 1")
        if self.margin is not None and not 0 <= self.margin <= 2:
            raise UserError(f"--margin {self.margin:g}: expected a number from 0 to 2")
        if self.mode != "negatives" and (self.skip or self.margin is not None):
            raise UserError("--skip and --margin go with --mode negatives")

    @property
    def at_least(self) -> float:
        return -np.inf if self.min_score is None else self.min_score


@dataclass(frozen=True)
class MiningJob:
    """Settings of a search: input, output, options, and the model that embeds texts."""

    source: Path
    output: Path
    options: MiningOptions
    folder: Path | None = None
    """model folder; None for a file of vectors"""
    task: str | None = None
    """task whose pooling is used. Defaults to the default task of `Model.embed`."""
    device: str = "auto"
    trust_code: bool = False

    def run(self, listener: BulkListener) -> int:
        """Write the output and return the number of searched rows."""
        require_writable(self.output)
        if not self.source.is_file():
            raise UserError(f"{self.source}: there is no such file")
        if self.output.exists() and self.output.samefile(self.source):
            raise UserError(f"{self.output}: is the input; choose another output")
        if self.source.suffix == ".npy":
            return self._search_vectors(listener)
        if self.folder is None:
            raise UserError(f"{self.source}: texts need a model; name its folder before --input")
        return self._search_texts(self.folder, listener)

    def _search_vectors(self, listener: BulkListener) -> int:
        if self.folder is not None or self.task is not None:
            raise UserError(f"{self.source}: holds vectors, which need no model and no --task; leave them out")
        if self.options.mode == "negatives":
            raise UserError("--mode negatives reads texts and their matches, not vectors; name a file of texts")
        vectors = VectorFile(self.source)
        with closing(Parts(self.output, self._identity(sha256(self.source), ""))) as parts, stopping_kindly(parts):
            self._search(Finder(self.options, vectors, vectors, None, parts.aside), parts, listener)
        return len(vectors)

    def _search_texts(self, folder: Path, listener: BulkListener) -> int:
        model = load(folder, self.device, trust_code=self.trust_code)
        task = self.task or model.embedding_task()
        sides = 2 if self.options.mode == "negatives" else 1
        if sides > len(model.columns(task)):
            raise UserError(f"--mode negatives: the task {task!r} reads one text; name a task that reads two by --task")
        work = Vectors(task, sides=sides)
        texts = BulkTexts(self.source, work.wishes(model))
        if not texts.look().rows:
            raise UserError(f"{self.source}: has no rows")
        identity = self._identity(texts.digest(), model_digest(folder) + task)
        with closing(Parts(self.output, identity)) as parts, stopping_kindly(parts):
            files = [self._embedded(replace(work, side=side), folder, parts, listener) for side in range(sides)]
            known = KnownTexts(self._texts(texts, task, parts.aside))
            finder = Finder(self.options, files[0], files[-1], known, parts.aside)
            self._search(finder, parts, listener)
        return len(files[0])

    def _identity(self, source: str, model: str) -> dict[str, object]:
        """Return everything that determines the output. Parts with another identity are not reused."""
        return {
            "format": FORMAT,
            "input": source,
            "model": model,
            "options": repr(self.options),
            "ending": self.output.suffix,
        }

    def _embedded(self, work: Vectors, folder: Path, parts: Parts, listener: BulkListener) -> VectorFile:
        """Return the vectors of one text column, from an earlier attempt or newly computed."""
        path = parts.aside / f"{STANDARD[work.side]}.npy"
        if not path.exists():
            BulkJob(folder, work, self.source, path, self.device, trust_code=self.trust_code).run(listener)
        return VectorFile(path)

    def _texts(self, texts: BulkTexts, task: str, folder: Path) -> pa.Table:
        """Return the texts of all rows, mapped from a file."""
        path = folder / "texts.arrow"
        with replacing(path) as temporary:
            writer: pa.ipc.RecordBatchFileWriter | None = None
            with pa.OSFile(str(temporary), "wb") as sink:
                for block in texts.blocks(QUERIES):
                    sides = block.sides[task]
                    columns = [pa.array(side, pa.large_string()) for side in sides]
                    batch = pa.table(columns, names=STANDARD[: len(sides)])
                    writer = writer or pa.ipc.new_file(sink, batch.schema)
                    writer.write_table(batch)
                if writer is not None:
                    writer.close()
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()

    def _search(self, finder: "Finder", parts: Parts, listener: BulkListener) -> None:
        rows = len(finder.queries)
        blocks = [range(start, min(start + QUERIES, rows)) for start in range(0, rows, QUERIES)]
        done = sum(len(block) for number, block in enumerate(blocks) if number in parts)
        listener.started(done, rows)
        form = choose_format(self.output, raw_csv=False)
        for number, block in enumerate(blocks):
            if number not in parts:
                parts.write(number, form.part(finder.table(block)))
                listener.advanced(len(block))
        parts.finish(len(blocks), lambda paths, to: form.join(paths, finder.schema, rows, to))


class KnownTexts:
    """The texts of all rows, and which of them are equal."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def column(self, name: str, rows: Rows) -> pa.ChunkedArray:
        return self.table.column(name).take(pa.array(rows)).cast(pa.string())

    def numbers(self) -> NDArray[np.int64]:
        """[n, 2] a number for each text; equal texts have equal numbers in both columns."""
        streams: Iterable[str] = chain.from_iterable(
            chunk.to_pylist() for column in self.table.columns for chunk in column.chunks
        )
        return first_equal(text_keys(streams)).reshape(self.table.num_columns, -1).T.astype(np.int64)


class Finder:
    """Finds the output rows of a block of queries."""

    def __init__(
        self,
        options: MiningOptions,
        queries: VectorFile,
        candidates: VectorFile,
        texts: KnownTexts | None,
        folder: Path,
    ) -> None:
        """`texts` is None for vectors without texts."""
        self.options = options
        self.queries = queries
        self.candidates = candidates
        self.texts = texts
        self.limits = Limits(options.at_least, hidden=itself)
        if options.mode == "negatives":
            assert texts is not None
            known = KnownMatches(texts.numbers())
            self.limits = Limits(options.at_least, usable=known.is_first, hidden=known.hidden)
        if options.mode == "pairs":
            self.lists = self._open_lists(folder)

    def _open_lists(self, folder: Path) -> NDArray[np.int32]:
        """[n, k] the neighbours of rows that were searched before, in a file, which an interrupted job continues"""
        path, shape = folder / "neighbours.i32", (len(self.queries), self.options.top_k)
        mode: Literal["r+", "w+"] = "r+" if path.exists() and path.stat().st_size == 4 * shape[0] * shape[1] else "w+"
        return np.memmap(path, np.int32, mode, shape=shape)

    @property
    def schema(self) -> pa.Schema:
        number, text, score = pa.int64(), pa.string(), pa.float32()
        if self.options.mode == "negatives":
            fields = [("text", text), ("text2", text), ("negative", text), ("score", score), ("negative_score", score)]
        elif self.texts is None:
            fields = [("row", number), ("row2", number), ("score", score)]
        else:
            fields = [("row", number), ("row2", number), ("text", text), ("text2", text), ("score", score)]
        return pa.schema(fields)

    def table(self, block: range) -> pa.Table:
        """Return the output rows of some queries, each query's best first."""
        if self.options.mode == "negatives":
            return self._negatives(block)
        found = nearest(self.queries, block, self.candidates, self.options.top_k, self.limits)
        one, two, scores = _flat(found, block)
        if self.options.mode == "pairs":
            self._remember(found, block)
            new = self._is_new(one, two)
            one, two, scores = np.minimum(one, two)[new], np.maximum(one, two)[new], scores[new]
        columns = [pa.array(one), pa.array(two)]
        if self.texts is not None:
            columns += [self.texts.column("text", one), self.texts.column("text", two)]
        return pa.table([*columns, pa.array(scores)], schema=self.schema)

    def _remember(self, found: Neighbours, block: range) -> None:
        self.lists[block.start : block.stop] = np.where(np.isfinite(found.scores), found.rows, -1)
        assert isinstance(self.lists, np.memmap)
        self.lists.flush()

    def _is_new(self, rows: Rows, neighbours: Rows) -> NDArray[np.bool_]:
        """Whether a pair was not found before from its other text: each pair is written once."""
        earlier = neighbours < rows
        new = ~earlier
        new[earlier] = ~(self.lists[neighbours[earlier]] == rows[earlier, None]).any(axis=1)
        return new

    def _negatives(self, block: range) -> pa.Table:
        assert self.texts is not None
        own = similarities(self.queries, self.candidates, block)
        limits = self.limits
        if self.options.margin is not None:
            most = np.full(len(self.queries), np.inf, dtype=np.float32)
            most[block.start : block.stop] = own - self.options.margin
            limits = replace(limits, at_most=most)
        found = nearest(self.queries, block, self.candidates, self.options.top_k + self.options.skip, limits)
        kept = Neighbours(found.rows[:, self.options.skip :], found.scores[:, self.options.skip :])
        rows, negatives, scores = _flat(kept, block)
        columns = [self.texts.column("text", rows), self.texts.column("text2", rows)]
        columns += [self.texts.column("text2", negatives), pa.array(own[rows - block.start]), pa.array(scores)]
        return pa.table(columns, schema=self.schema)


class KnownMatches:
    """Which candidates are no negatives of a row: its text, and every second text of a row with the same first text."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        """`numbers` [n, 2]: equal texts have equal numbers"""
        first, second = numbers.T
        distinct, place = np.unique(second, return_index=True)
        self.is_first: NDArray[np.bool_] = np.zeros(len(numbers), dtype=bool)
        """[n] whether a row is the first with its second text, which stands for all of them"""
        self.is_first[place] = True
        self.first = first
        self.order = np.argsort(first, kind="stable")
        """rows, those with equal first texts together"""
        self.sorted = first[self.order]
        self.stands = place[np.searchsorted(distinct, second)]
        """[n] the row that stands for a row's second text"""
        at = np.minimum(np.searchsorted(distinct, first), len(distinct) - 1)
        self.itself = np.where(distinct[at] == first, place[at], -1)
        """[n] the row that stands for the first text as a candidate, or -1"""

    def hidden(self, rows: range) -> tuple[Rows, Rows]:
        asked = self.first[rows.start : rows.stop]
        starts, ends = (np.searchsorted(self.sorted, asked, side=side) for side in ("left", "right"))
        at = np.repeat(np.arange(len(rows)), ends - starts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(ends - starts) - (ends - starts), ends - starts)
        matches = self.stands[self.order[np.repeat(starts, ends - starts) + within]]
        own = self.itself[rows.start : rows.stop]
        known = np.flatnonzero(own >= 0)
        return np.concatenate([at, known]), np.concatenate([matches, own[known]])


def itself(rows: range) -> tuple[Rows, Rows]:
    """A row is not its own neighbour."""
    return np.arange(len(rows)), np.arange(rows.start, rows.stop)


def _flat(found: Neighbours, block: range) -> tuple[Rows, Rows, NDArray[np.float32]]:
    """Return query, candidate and score of every neighbour."""
    at, place = np.nonzero(np.isfinite(found.scores))
    return at + block.start, found.rows[at, place], found.scores[at, place]
