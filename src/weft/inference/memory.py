"""Memory of an engine: outputs of sequences that occur in many shards of a file, so that each is encoded once.

Outputs are recorded in chunks. A chunk is an Arrow file that can be mapped, so it needs no memory of its own. What is
recalled has the bits that were recorded: a prediction does not depend on which shards were computed before it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from weft.data.readings import TokenSequence

Outputs = dict[str, dict[int, NDArray[Any]]]
"""name of an output -> index of a sequence -> its row: a vector, probabilities, or the outputs of all of its tokens"""
DIGEST = "digest"
"""the column that identifies a row of a chunk; it comes before those of the outputs, which have any name"""
SHAPES = b"shapes"


class EncodedTexts:
    """Recalls the outputs of sequences, by their content, and records new ones on request."""

    def __init__(self) -> None:
        self.chunks: list[pa.Buffer] = []
        """everything that can be recalled"""
        self.records = False
        """whether `outputs` records what it computes"""
        self._fresh: dict[bytes, dict[str, NDArray[Any]]] = {}
        self._columns: list[dict[str, tuple[pa.ListArray, list[int]]]] = []
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, chunk: pa.Buffer) -> None:
        """Add a chunk to what can be recalled."""
        table = pa.ipc.open_file(chunk).read_all()
        number = len(self.chunks)
        self.chunks.append(chunk)
        shapes = json.loads(table.schema.metadata[SHAPES])
        columns = [column.combine_chunks() for column in table.columns]
        self._columns.append(dict(zip(shapes, zip(columns[1:], shapes.values(), strict=True), strict=True)))
        self._places.update((digest, (number, row)) for row, digest in enumerate(columns[0].to_pylist()))

    def outputs(
        self,
        sequences: Sequence[TokenSequence],
        wanted: Sequence[Sequence[str]],
        compute: Callable[[list[int]], Outputs],
    ) -> Outputs:
        """Return the `wanted` outputs of each sequence; `compute` gets the indices of those that are not known."""
        digests = [_digest(sequence, names) for sequence, names in zip(sequences, wanted, strict=True)]
        unknown = [i for i, digest in enumerate(digests) if digest not in self._places]
        found = compute(unknown) if unknown else {}
        if self.records:
            for i in unknown:
                self._fresh[digests[i]] = {name: found[name][i] for name in wanted[i]}
        for i, (digest, names) in enumerate(zip(digests, wanted, strict=True)):
            if digest in self._places:
                for name in names:
                    found.setdefault(name, {})[i] = self._recall(*self._places[digest], name)
        return found

    def recorded(self) -> pa.Buffer:
        """Return what was recorded since the last call as a chunk. It is not added."""
        fresh, self._fresh = self._fresh, {}
        rows = list(fresh.values())
        shapes: dict[str, list[int]] = {}
        columns: list[pa.Array] = [pa.array(list(fresh), pa.binary())]
        for name in dict.fromkeys(name for row in rows for name in row):
            first = next(row[name] for row in rows if name in row)
            shapes[name] = [-1, *first.shape[1:]][: len(first.shape)]  # a number has no dimension
            kind = pa.list_(pa.from_numpy_dtype(first.dtype))
            columns.append(pa.array([row[name].ravel() if name in row else None for row in rows], kind))
        table = pa.table(columns, [DIGEST, *shapes]).replace_schema_metadata({SHAPES: json.dumps(shapes)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
        return sink.getvalue()

    def _recall(self, chunk: int, row: int, name: str) -> NDArray[Any]:
        column, shape = self._columns[chunk][name]
        recalled: NDArray[Any] = column[row].values.to_numpy().reshape(shape)
        return recalled


def _digest(sequence: TokenSequence, names: Sequence[str]) -> bytes:
    ids, of_second, windows = sequence.key
    about = json.dumps([of_second, windows, sorted(names)]).encode()
    return hashlib.blake2b(about + b"\0" + ids, digest_size=16).digest()
