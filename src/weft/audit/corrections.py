"""The correction table: every row that an audit lists, in a new file."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from weft.audit.findings import RowFinding
from weft.data.tables import require_writable
from weft.foundation.errors import UserError
from weft.inference.bulk.formats import FORMATS

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "finding", "split", "file")),
        ("line", pa.int64()),
        *((name, pa.string()) for name in ("text", "text2", "label", "suggestion")),
        ("score", pa.float64()),
        ("detail", pa.string()),
    ]
)


def require_new(path: Path) -> None:
    """Raise UserError if the file exists, before any work is done: an audit never overwrites a file."""
    require_writable(path)
    if os.path.lexists(path):
        raise UserError(f"--write {path}: exists, and an audit overwrites no file; choose another name")


def write_corrections(findings: Sequence[RowFinding], path: Path) -> None:
    """Write one line for each finding. Fails if the file has been created meanwhile."""
    rows = [
        (f.task, f.finding, f.split, f.file, f.line, *_two(f.texts), f.label, f.suggestion, f.score, f.detail)
        for f in findings
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    table = pa.table([pa.array(list(column), of.type) for column, of in zip(columns, SCHEMA, strict=True)], SCHEMA)
    form = FORMATS[path.suffix]
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        part, whole = Path(folder, "part"), Path(folder, "whole")
        part.write_bytes(form.part(table))
        form.join([part], SCHEMA, len(rows), whole)
        try:
            os.link(whole, path)  # unlike a rename, a link never replaces a file
        except FileExistsError:
            require_new(path)
            raise


def _two(texts: Sequence[str]) -> tuple[str, str | None]:
    return texts[0], texts[1] if len(texts) > 1 else None
