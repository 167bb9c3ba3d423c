"""Parts joined are the file that would have been written at once."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.foundation.errors import UserError
from weft.inference.bulk import formats
from weft.inference.bulk.formats import FORMATS, choose_format

ODD = ['a "quoted", text', "two\nlines", "tab\there", "", "Zürich", "[]"]
ANSWERS = pa.table(
    {
        "label": pa.array([[], ["x"], ["x", "y, z"], [], ["ü"], []], pa.list_(pa.string())),
        "score": [0.1, 1e-17, 1.0, 2 / 3, -4.5, 1e300],
        "text": ODD,
    }
)
VECTORS = np.arange(12, dtype=np.float32).reshape(6, 2) / 7
EMBEDDED = pa.table(
    {"text": ODD, "embedding": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), VECTORS.shape[1])}
)


def written(table: pa.Table, ending: str, folder: Path, rows: int) -> Path:
    """`table` in parts of so many rows, joined."""
    folder.mkdir()
    form, paths = FORMATS[ending], []
    for start in range(0, len(table), rows):
        paths.append(folder / f"{start:03d}.part")
        paths[-1].write_bytes(form.part(table.slice(start, rows)))
    form.join(paths, table.schema, len(table), folder / f"whole{ending}")
    return folder / f"whole{ending}"


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_however_a_table_is_cut_the_file_is_the_same(ending: str, tmp_path: Path) -> None:
    one, two, three = (written(ANSWERS, ending, tmp_path / str(rows), rows) for rows in (1, 4, 100))
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()


def test_every_value_comes_back(tmp_path: Path) -> None:
    expected = ANSWERS.to_pylist()
    assert pq.read_table(written(ANSWERS, ".parquet", tmp_path / "p", 2)).to_pylist() == expected
    lines = written(ANSWERS, ".jsonl", tmp_path / "j", 2).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == expected
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        text = written(ANSWERS, ending, tmp_path / ending, 2).read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        assert [row["text"] for row in rows] == ODD
        assert [float(row["score"]) for row in rows] == [row["score"] for row in expected]
        assert [json.loads(row["label"]) for row in rows] == [row["label"] for row in expected]


def test_vectors_are_a_numpy_array_or_a_column(tmp_path: Path) -> None:
    npy = written(EMBEDDED, ".npy", tmp_path / "n", 4)
    np.save(tmp_path / "numpy.npy", VECTORS)
    assert npy.read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    assert pq.read_table(written(EMBEDDED, ".parquet", tmp_path / "p", 4)) == EMBEDDED


@pytest.mark.parametrize("ending", FORMATS)
def test_no_rows_still_make_a_file(ending: str, tmp_path: Path) -> None:
    table = EMBEDDED if ending == ".npy" else ANSWERS
    empty = written(table.slice(0, 0), ending, tmp_path / "x", 1)
    if ending == ".npy":
        assert np.load(empty).shape == (0, 2)
    elif ending == ".parquet":
        assert pq.read_table(empty).schema == table.schema
    else:
        assert empty.read_text() == {".csv": "label,score,text\n", ".tsv": "label\tscore\ttext\n", ".jsonl": ""}[ending]


def test_parquet_parts_become_row_groups_of_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "GROUP_BYTES", 100)
    groups = pq.read_metadata(written(ANSWERS, ".parquet", tmp_path / "x", 1)).num_row_groups
    assert 1 < groups < len(ANSWERS)


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_no_cell_is_a_formula_unless_asked_for(ending: str, tmp_path: Path) -> None:
    """Labels and texts of others must not run in the spreadsheet of whoever opens the answers."""
    cells = ['=HYPERLINK("http://h")', "@SUM(A1)", "-2", "+a", "good", "\tx"]
    table = pa.table({"=label": cells, "score": [-0.5] * 6})
    for raw in (False, True):
        form = choose_format(tmp_path / f"out{ending}", raw_csv=raw)
        (tmp_path / "part").write_bytes(form.part(table))
        form.join([tmp_path / "part"], table.schema, 6, tmp_path / f"out{ending}")
        with (tmp_path / f"out{ending}").open(newline="") as handle:
            header, *rows = csv.reader(handle, delimiter="," if ending == ".csv" else "\t")
        quoted = ['\'=HYPERLINK("http://h")', "'@SUM(A1)", "-2", "'+a", "good", "'\tx"]
        assert [row[0] for row in rows] == (cells if raw else quoted)
        assert header == ["=label" if raw else "'=label", "score"]
        assert {row[1] for row in rows} == {"-0.5"}


def test_raw_csv_is_for_csv(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--raw-csv goes with an output that ends in .csv or .tsv"):
        choose_format(tmp_path / "out.parquet", raw_csv=True)
