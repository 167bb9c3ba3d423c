"""Tables of texts that users hand in for prediction."""

from collections.abc import Sequence
from pathlib import Path

from weft.data.files import ENDINGS, read_rows, require_columns
from weft.data.problems import Problems
from weft.errors import UserError

STANDARD = ("text", "text2")
VECTOR_ENDINGS = (".npy", ".parquet")


def choose_columns(found: Sequence[str], own: Sequence[str]) -> list[str]:
    """Where a task's texts are: in the columns `text` and `text2`, or else in those of the task's own files."""
    standard = list(STANDARD[: len(own)])
    return standard if all(name in found for name in standard) else list(own)


def read_texts(path: Path, own: list[str]) -> list[list[str]]:
    """One list for each column of a small file."""
    problems = Problems(path)
    rows = [row.values for row in read_rows(path, problems, lambda found: _required(path, found, own))]
    problems.stop()
    return [[row[name] for row in rows] for name in (_required(path, list(rows[0]), own) if rows else own)]


def _required(path: Path, found: list[str], own: list[str]) -> list[str]:
    columns = choose_columns(found, own)
    require_columns(path, found, columns)
    return columns


def require_writable(path: Path, endings: tuple[str, ...] = ENDINGS) -> None:
    """Said before any work is done, not after."""
    if path.suffix not in endings:
        raise UserError(f"{path}: expected a name that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
