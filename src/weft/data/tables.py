"""Tables of texts that users hand in for prediction."""

from collections.abc import Iterator
from pathlib import Path

from weft.data.files import ENDINGS, read_rows, require_columns
from weft.data.problems import Problems
from weft.errors import UserError

STANDARD = ("text", "text2")
VECTOR_ENDINGS = (".npy", ".parquet")


def stream_texts(path: Path, own: list[str], problems: Problems) -> Iterator[tuple[str, ...]]:
    """The texts of one row after the other, from the columns `own`, which may also be called `text` and `text2`."""

    def chosen(found: list[str]) -> list[str]:
        standard = list(STANDARD[: len(own)])
        columns = standard if all(name in found for name in standard) else own
        require_columns(path, found, columns)
        return columns

    columns: list[str] | None = None
    for row in read_rows(path, problems, chosen):
        columns = columns or chosen(list(row.values))
        yield tuple(row.values[name] for name in columns)


def read_texts(path: Path, own: list[str]) -> list[list[str]]:
    """One list for each column of a small file."""
    problems = Problems(path)
    rows = list(stream_texts(path, own, problems))
    problems.stop()
    return [[row[side] for row in rows] for side in range(len(own))]


def require_writable(path: Path, endings: tuple[str, ...] = ENDINGS) -> None:
    """Said before any work is done, not after."""
    if path.suffix not in endings:
        raise UserError(f"{path}: expected a name that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
