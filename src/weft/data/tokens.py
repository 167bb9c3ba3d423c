"""Token cache: each file is tokenized once into a memory-mapped Arrow file, so memory does not grow with the data.

The cache key depends on the file's content, the tokenizer and the text columns, never on labels, readings or
lengths. Those are applied when rows are used, so that all recipes of a study share one cache. An index by path, size
and modification time avoids hashing an unchanged file again. Cache files are written atomically: to a unique
temporary name, then renamed. Two processes that build the same file get the same result and never read a partial
file. The digest is stored next to the file and verified each time it is opened. A modified file is built again.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.data.dialect import Dialect, detect
from weft.data.empty import OnEmpty, empty_column
from weft.data.files import Row, read_rows, require_columns
from weft.data.frames import Frame, Source
from weft.data.layout import PLAIN, Layout
from weft.data.masking import MaskKind, mask
from weft.data.opening import is_delimited
from weft.data.problems import Problems
from weft.data.tokenizer import Tokenizer
from weft.data.word_tokens import by_size, joined_texts, word_columns
from weft.data.words import WordTable
from weft.foundation.atomic import replacing, write_whole
from weft.foundation.errors import UserError
from weft.kinds.base import WordSplit

FORMAT = "4"
PRIVATE = 0o600
CHUNK = 8192
"""Number of rows in each record batch except the last: row r is in batch r // CHUNK."""

Ids = NDArray[np.int32]


def cache_folder() -> Path:
    """Return the cache folder: WEFT_CACHE, or `weft` in the user's cache folder."""
    if chosen := os.environ.get("WEFT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"


class TokenizedFile:
    """Rows of one file or table, with their tokens and all columns as text."""

    def __init__(self, path: Path, source: Source, text_columns: list[str]) -> None:
        self.source = source
        self.key = path.stem
        """Cache key, a hash of the content, the tokenizer and the settings, and how texts are split into words."""
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self.table: pa.Table = reader.read_all()
        notes = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        self.masked: dict[str, int] = notes["masked"]
        """Number of masked matches in the text columns, by kind."""
        self.skipped: dict[str, int] = notes["skipped"]
        """Number of skipped rows, by kind of problem."""
        self.dialect = Dialect.from_dict(notes["dialect"]) if notes["dialect"] else None
        """Dialect of a csv or tsv file, None for other sources."""
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._tokens = {
            name: [
                (
                    batch.column(f"ids/{name}").offsets.to_numpy(),
                    batch.column(f"ids/{name}").values.to_numpy(),
                )
                for batch in batches
            ]
            for name in text_columns
        }
        self._words = {
            name.removeprefix("words/"): self.table.column(name)
            for name in self.table.column_names
            if name.startswith("words/")
        }

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def has_words(self) -> bool:
        """Whether the file was tokenized with its words."""
        return bool(self._words)

    @property
    def text_columns(self) -> list[str]:
        """Columns that are tokenized."""
        return list(self._tokens)

    def ids(self, column: str, row: int) -> Ids:
        """Return the token ids of one text, as a view into the file."""
        offsets, values = self._tokens[column][row // CHUNK]
        at = row % CHUNK
        ids: Ids = values[offsets[at] : offsets[at + 1]]
        return ids

    def words(self, column: str, row: int) -> WordTable | None:
        """Return the words of one text, or None if the file was tokenized without words."""
        if column not in self._words:
            return None
        table: WordTable = self._words[column][row].values.to_numpy().reshape(-1, 4)
        return table

    def lengths(self, column: str) -> NDArray[np.int64]:
        """Return the number of tokens of each text."""
        return np.concatenate([np.diff(offsets) for offsets, _ in self._tokens[column]]).astype(np.int64)

    @property
    def columns(self) -> list[str]:
        return [name.removeprefix("column/") for name in self.table.column_names if name.startswith("column/")]

    def strings(self, column: str) -> pa.ChunkedArray:
        """Return a column as text."""
        return self.table.column(f"column/{column}")

    def stream(self, column: str) -> Iterator[str]:
        """Yield the texts of a column, with only one chunk in memory at a time."""
        return (text for chunk in self.strings(column).chunks for text in chunk.to_pylist())

    def text(self, column: str, row: int) -> str:
        return str(self.strings(column)[row].as_py())

    def line(self, row: int) -> int:
        return int(self.table.column("line")[row].as_py())

    def texts_key(self, columns: Sequence[str]) -> str:
        """Return a key that is equal for files whose rows have the same texts.

        Different files have different keys. Of tables in memory only the tokens count: each has the labels of one task.
        """
        if isinstance(self.source, Path):
            return self.key.partition("-")[0]  # words change no text
        content = hashlib.sha256(self.table.column("line").to_numpy().tobytes())
        for name in columns:
            for offsets, values in self._tokens[name]:
                content.update(offsets.tobytes())
                content.update(values[offsets[0] : offsets[-1]].tobytes())
        return content.hexdigest()


def tokenize_file(
    source: Source,
    text_columns: list[str],
    tokenizer: Tokenizer,
    *,
    masks: Sequence[MaskKind] = (),
    skip_bad_rows: bool = False,
    layout: Layout = PLAIN,
    on_empty: OnEmpty = "error",
    words: WordSplit | None = None,
) -> TokenizedFile:
    """Return the tokenized form of a file or of a table in memory, from the cache or newly built.

    `words` says how texts are split into words, if the labels are of words.
    """
    if isinstance(source, Path) and not source.is_file():
        raise UserError(f"{source}: there is no such file")
    folder = private_folder()
    settings = json.dumps(
        [FORMAT, text_columns, sorted(masks), skip_bad_rows, on_empty, astuple(layout), _is_delimited(source)]
    )
    content = source.digest() if isinstance(source, Frame) else _content(source, folder)
    key = "-".join([hash_of(settings, content, tokenizer.digest), *([words] if words else [])])
    target = folder / f"{key}.arrow"
    if not _is_sound(target):
        _build(source, text_columns, tokenizer, target, masks, skip_bad_rows, on_empty, layout, words)
    return TokenizedFile(target, source, text_columns)


def _is_delimited(source: Source) -> TypeGuard[Path]:
    return isinstance(source, Path) and is_delimited(source)


def private_folder() -> Path:
    """Return the cache folder, readable by its owner only: it contains the user's texts, and its content is trusted."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise UserError(f"{folder}: the token cache belongs to another user; set WEFT_CACHE to your own folder")
        if folder.stat().st_mode & 0o777 != 0o700:
            folder.chmod(0o700)
        (folder / "index").mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: the token cache cannot be written ({error.strerror}); set WEFT_CACHE to a folder that can"
        ) from None
    return folder


def _is_sound(path: Path) -> bool:
    """Return whether a cache file matches the digest stored when it was built. Reads the whole file."""
    try:
        notes = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return bool(notes["digest"] == _bytes_digest(path))
    except (OSError, ValueError, KeyError, TypeError):
        return False  # missing or damaged: build it again


def _bytes_digest(path: Path) -> str:
    with pa.memory_map(str(path)) as mapped:
        return hashlib.sha256(mapped.read_buffer()).hexdigest()


def _content(path: Path, folder: Path) -> str:
    """Return the hash of a file. The file is read only if its size or modification time has changed."""
    stat = path.stat()
    known = folder / "index" / f"{hash_of(str(path.resolve()))}.json"
    stamp = [stat.st_size, stat.st_mtime_ns]
    try:
        entry = json.loads(known.read_text(encoding="utf-8"))
        if entry["stamp"] == stamp:
            return str(entry["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # missing or invalid entry: hash the file
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    write_whole(known, json.dumps({"stamp": stamp, "digest": digest}), mode=PRIVATE)
    return digest


def _build(
    source: Source,
    text_columns: list[str],
    tokenizer: Tokenizer,
    target: Path,
    masks: Sequence[MaskKind],
    skip_bad_rows: bool,
    on_empty: OnEmpty,
    layout: Layout,
    words: WordSplit | None,
) -> None:
    problems, empty = Problems(source), Problems(source)
    fatal, skipped = Problems(source), Problems(source)

    def sort_out() -> None:
        """Separate fatal problems from skipped rows, and raise if any are fatal."""
        (skipped if skip_bad_rows else fatal).join(problems)
        (skipped if on_empty == "skip" else fatal).join(empty)
        fatal.stop()

    masked: Counter[str] = Counter()
    checked = _checked(source, text_columns, problems, None if on_empty == "keep" else empty, layout)
    if words is None:
        checked = joined_texts(checked, text_columns)
    rows = _masked(checked, text_columns, masks, masked)
    first = next(rows, None)
    if first is None:
        sort_out()
        left_out = ", ".join(f"{count:,} x {what}" for what, count in skipped.counts.items())
        nothing = "has no rows" if isinstance(source, Frame) else "has a header but no rows"
        why = f"leaves no row: all were skipped ({left_out})" if left_out else nothing
        raise UserError(f"{source}: {why}")
    columns = list(first.values)
    schema = pa.schema(
        [("line", pa.int64())]
        + [(f"column/{name}", pa.string()) for name in columns]
        + [(f"ids/{name}", pa.list_(pa.int32())) for name in text_columns]
        + [(f"words/{name}", pa.list_(pa.int32())) for name in text_columns if words is not None]
    )
    with replacing(target, mode=PRIVATE) as temporary:
        with pa.ipc.new_file(str(temporary), schema) as sink:
            for batch in _batches(chain([first], rows), schema, tokenizer, words):
                sink.write_batch(batch)
        pa.default_memory_pool().release_unused()  # Arrow would keep the memory for the next file
        sort_out()
        dialect = detect(source, layout).as_dict() if _is_delimited(source) else None
        digest = _bytes_digest(temporary)
        notes = {"masked": masked, "skipped": skipped.counts, "dialect": dialect, "digest": digest}
        write_whole(target.with_suffix(".json"), json.dumps(notes), mode=PRIVATE)


def _batches(
    rows: Iterator[Row], schema: pa.Schema, tokenizer: Tokenizer, words: WordSplit | None
) -> Iterator[pa.RecordBatch]:
    """Yield record batches. The next chunk is read while the current one is tokenized."""
    with ThreadPoolExecutor(max_workers=1) as helper:
        waiting: Future[pa.RecordBatch] | None = None
        while chunk := list(islice(rows, CHUNK)):
            under_way = helper.submit(_batch, chunk, schema, tokenizer, words)
            if waiting is not None:
                yield waiting.result()
            waiting = under_way
        if waiting is not None:
            yield waiting.result()


def _batch(chunk: list[Row], schema: pa.Schema, tokenizer: Tokenizer, split: WordSplit | None) -> pa.RecordBatch:
    arrays = []
    texts = {} if split is None else word_columns(chunk, schema, tokenizer, split)
    for field in schema:
        kind, _, name = field.name.partition("/")
        if kind == "line":
            values: Any = [row.line for row in chunk]
        else:
            values = [row.values[name] for row in chunk]
        if field.name in texts:
            arrays.append(texts[field.name])
        elif kind == "ids":
            parts = [pa.array(tokenizer.encode(part), field.type) for part in by_size(values)]
            arrays.append(parts[0] if len(parts) == 1 else pa.concat_arrays(parts))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.record_batch(arrays, schema=schema)


def _masked(
    rows: Iterator[Row], text_columns: list[str], kinds: Sequence[MaskKind], counts: Counter[str]
) -> Iterator[Row]:
    for row in rows:
        if kinds:
            row.values.update({name: mask(row.values[name], kinds, counts) for name in text_columns})
        yield row


def _checked(
    source: Source, text_columns: list[str], problems: Problems, empty: Problems | None, layout: Layout
) -> Iterator[Row]:
    """Yield usable rows. Add the others to `problems`, and those with an empty text to `empty` if given."""
    checked_header = False
    for row in read_rows(source, problems, layout=layout):
        if not checked_header:
            require_columns(source, list(row.values), text_columns)
            checked_header = True
        column = None if empty is None else empty_column(row.values, text_columns)
        if column is not None and empty is not None:
            empty.add(row.line, "empty text", f"column {column!r} is empty, expected a text (see on_empty)")
        else:
            yield row


def hash_of(*parts: str) -> str:
    """Return the hash of some texts."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:40]
