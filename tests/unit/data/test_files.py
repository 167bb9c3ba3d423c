import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.data.files import read_rows
from weft.data.problems import Problems
from weft.foundation.errors import UserError


def rows_of(path: Path) -> list[tuple[int, dict[str, str]]]:
    problems = Problems(path)
    rows = [(row.line, row.values) for row in read_rows(path, problems)]
    problems.stop()
    return rows


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_the_delimiter_is_taken_from_the_header(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"text{delimiter}label\nfine film{delimiter}1\n", encoding="utf-8")
    assert rows_of(path) == [(2, {"text": "fine film", "label": "1"})]


def test_lines_are_counted_through_quoted_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines, and ""quotes""",1\nnext,0\n', encoding="utf-8")
    assert rows_of(path) == [
        (2, {"text": 'two\nlines, and "quotes"', "label": "1"}),
        (4, {"text": "next", "label": "0"}),
    ]


def test_an_unnamed_first_column_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf\tid\tsentence\n0\tx1\tfine\n")
    assert rows_of(path) == [(2, {"": "0", "id": "x1", "sentence": "fine"})]


def test_wrong_numbers_of_fields_are_all_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "only one\n" * 25 + "good\t1\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        rows_of(path)
    lines = str(error.value).splitlines()
    assert lines[0] == f"{path}:2: has 1 fields, the header has 2"
    assert len(lines) == 21
    assert "5 more" in lines[-1]
    assert "25 x wrong number of fields" in lines[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"text,text\na,b\n", "stands twice"),
        (b"text,label\ncaf\xe9,1\n", "is not UTF-8"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        rows_of(path)
    assert str(path) in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        rows_of(tmp_path / "none.csv")


CONTENT = [{"text": "fine film", "label": "1", "tags": '["a", "b"]'}, {"text": "", "label": "2.5", "tags": "[]"}]
TYPED = [{"text": "fine film", "label": 1, "tags": ["a", "b"]}, {"text": None, "label": 2.5, "tags": []}]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz", "parquet"])
def test_every_format_gives_the_same_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        columns = {"text": ["fine film", None], "label": [1.0, 2.5], "tags": [["a", "b"], []]}
        pq.write_table(pa.table(columns), path)
    elif "jsonl" in ending:
        _write(path, "".join(json.dumps(row) + "\n" for row in TYPED))
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, ["text", "label", "tags"], delimiter="\t" if "tsv" in ending else ",")
        writer.writeheader()
        writer.writerows(CONTENT)
        _write(path, buffer.getvalue())
    rows = [values for _, values in rows_of(path)]
    if ending == "parquet":
        rows[0]["label"] = rows[0]["label"].removesuffix(".0")
    assert rows == CONTENT


def _write(path: Path, text: str) -> None:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_lines_that_are_not_json_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n\n[1]\n{"text": \n{"text": "b", "other": 1}\n')
    with pytest.raises(UserError) as error:
        rows_of(path)
    assert f"{path}:3: is a JSON list, expected an object" in str(error.value)
    assert f"{path}:4: is not JSON" in str(error.value)
    assert f"{path}:5: has the key 'other', which the first row has not" in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"), [("a.parquet", b"PAR1 not"), ("a.csv.gz", b"\x1f\x8b broken"), ("a.jsonl", b"")]
)
def test_files_of_another_format(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        rows_of(tmp_path / name)
