"""Process a file of any size in shards. A job that was interrupted resumes with the missing shards.

The same input, model, work, output format and shard size give the same bytes, regardless of interruptions.
"""

import base64
import signal
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from weft.foundation.errors import Interrupted, RunError, UserError
from weft.foundation.own_code import code_digests
from weft.inference.bulk import SHARD_ROWS
from weft.inference.bulk.executors import Answerer, BulkExecutor, LocalBulkExecutor, Shard
from weft.inference.bulk.formats import choose_format
from weft.inference.bulk.parts import Parts, parts_folder, read_manifest
from weft.inference.bulk.texts import BulkTexts, Facts
from weft.inference.bulk.work import Work
from weft.inference.memory import EncodedTexts
from weft.inference.model import Model, load
from weft.runs.model_folder import model_digest

EXECUTORS = ("local", "ray")
FORMAT = 3


class BulkListener(Protocol):
    """Interface for progress events of a bulk job."""

    def started(self, done: int, rows: int) -> None: ...
    def advanced(self, rows: int) -> None: ...
    def noted(self, message: str) -> None: ...


class QuietBulk:
    """Listener that ignores all events."""

    def started(self, done: int, rows: int) -> None: ...
    def advanced(self, rows: int) -> None: ...
    def noted(self, message: str) -> None: ...


@dataclass(frozen=True)
class BulkJob:
    """Settings of a bulk job: model, work, input, output and executor."""

    folder: Path
    """model folder"""
    work: Work
    source: Path
    output: Path
    device: str = "auto"
    executor: str = "local"
    shard_rows: int = SHARD_ROWS
    raw_csv: bool = False
    """whether CSV cells are written unescaped, even those that a spreadsheet would run as a formula"""
    trust_code: bool = False
    """whether the code that the model names is imported"""

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise UserError(f"--executor {self.executor}: expected {' or '.join(EXECUTORS)}")
        if self.shard_rows < 1:
            raise UserError(f"--shard-rows {self.shard_rows}: expected at least 1")
        if self.output.exists() and self.source.exists() and self.output.samefile(self.source):
            raise UserError(f"{self.output}: is the input; choose another output")
        choose_format(self.output, raw_csv=self.raw_csv)

    def run(self, listener: BulkListener) -> int:
        """Write the output and return its number of rows."""
        digest = model_digest(self.folder)
        model = load(self.folder, self.device, trust_code=self.trust_code)
        if model_digest(self.folder) != digest:
            raise UserError(f"{self.folder}: was changed while it was read; start again when its training has ended")
        executor = self._executor(model, digest)
        texts = BulkTexts(self.source, self.work.wishes(model), self.work.keep)
        identity = self._identity(texts, digest, model)
        before = read_manifest(self.output)
        facts = _known(before)
        if before != identity or facts is None:
            facts = texts.look(self.shard_rows)
        if note := texts.note():
            listener.noted(note)
        if before and before != identity:
            odd = ", ".join(key for key in identity if before.get(key) != identity[key])
            listener.noted(f"{parts_folder(self.output)} is of another {odd}: beginning anew")
        schema, rows = self.work.schema(model, facts.kept), facts.rows
        form = choose_format(self.output, raw_csv=self.raw_csv)
        for name, new in zip(facts.kept.names, schema.names, strict=False):
            if self.work.keep != () and name != new:
                listener.noted(f"{self.source}: its column {name!r} is called {new!r} in the output")
        with closing(Parts(self.output, identity | _written(facts))) as parts, stopping_kindly(parts):
            self._answer(model, texts, facts, parts, executor, listener)
            texts.require_unchanged()  # a file that grew would have rows without a prediction
            parts.finish(self._count(rows), lambda paths, to: form.join(paths, schema, rows, to))
        return rows

    def _answer(
        self,
        model: Model,
        texts: BulkTexts,
        facts: Facts,
        parts: Parts,
        executor: BulkExecutor,
        listener: BulkListener,
    ) -> None:
        rows = facts.rows
        missing = [number for number in range(self._count(rows)) if number not in parts]
        done = rows - sum(self._rows_in(number, rows) for number in missing)
        if done:
            listener.noted(f"going on after {done:,} of {rows:,} rows")
        listener.started(done, rows)
        if not missing:
            return
        wanted = set(missing)
        memory = self._memory(model, texts, facts, parts)
        blocks = enumerate(texts.blocks(self.shard_rows, facts.kept))
        for number, part in executor.parts((Shard(n, block) for n, block in blocks if n in wanted), memory):
            texts.require_unchanged()  # else a resumed job would reuse a part computed from different rows
            parts.write(number, part)
            listener.advanced(self._rows_in(number, rows))

    def _memory(self, model: Model, texts: BulkTexts, facts: Facts, parts: Parts) -> EncodedTexts | None:
        """Encode the texts that occur in several shards, if any. They are saved with the parts, for a resumed job."""
        if not facts.repeats:
            return None
        memory = model.engine.memory = EncodedTexts()
        for number, block in enumerate(texts.blocks(self.shard_rows, only=facts.repeats)):
            file = parts.aside / f"{number:08d}.arrow"
            if not file.exists():
                memory.records = True
                self.work.table(model, block)
                memory.records = False
                texts.require_unchanged()
                parts.write_aside(file.name, memory.recorded().to_pybytes())
            memory.add(pa.memory_map(str(file)).read_buffer())
        return memory

    def _count(self, rows: int) -> int:
        return -(-rows // self.shard_rows)

    def _rows_in(self, shard: int, rows: int) -> int:
        return min(self.shard_rows, rows - shard * self.shard_rows)

    def _executor(self, model: Model, digest: str) -> BulkExecutor:
        form = choose_format(self.output, raw_csv=self.raw_csv)
        if self.executor == "local":
            return LocalBulkExecutor(Answerer(model, self.work, form))
        from weft.inference.bulk.on_ray import OnRay

        return OnRay(self.folder, digest, self.device, self.work, form, self.trust_code)

    def _identity(self, texts: BulkTexts, digest: str, model: Model) -> dict[str, Any]:
        """Return everything that determines the output. Shards with another identity are not reused."""
        return code_digests(model.code) | {
            "format": FORMAT,
            "input": texts.digest(),
            "model": digest,
            "work": repr(self.work),
            "ending": self.output.suffix,
            "raw csv": self.raw_csv,
            "shard size": self.shard_rows,
        }


def _written(facts: Facts) -> dict[str, Any]:
    """Return the facts as manifest entries, so that a resumed job does not scan the whole input again."""
    return {
        "rows": facts.rows,
        "kept": _coded(facts.kept.serialize().to_pybytes()),
        "repeats": _coded(array("Q", facts.repeats).tobytes()),
    }


def _known(manifest: dict[str, Any]) -> Facts | None:
    """Remove the facts from a manifest and return them, or None if they are missing or invalid."""
    rows, kept, repeats = (manifest.pop(key, None) for key in ("rows", "kept", "repeats"))
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept)))
        return Facts(int(rows), schema, tuple(array("Q", base64.b64decode(repeats))))
    except (TypeError, ValueError, pa.ArrowException):
        return None


def _coded(content: bytes) -> str:
    """Return bytes as text for a manifest."""
    return base64.b64encode(content).decode()


@contextmanager
def stopping_kindly(parts: Parts) -> Iterator[None]:
    """On Ctrl-C, SIGTERM or a full disk, raise an error that names the saved parts. They are kept in any case."""
    kept = f"what is answered is kept in {parts.folder}: run the same command to continue"
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not in the main thread: the caller handles signals
        before = None
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; {kept}") from None
    except (OSError, RunError) as error:  # a full disk, a cluster that lost its workers
        raise RunError(f"{error}; {kept}") from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
