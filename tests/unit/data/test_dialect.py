"""How csv and tsv files are written, found from their whole content."""

from pathlib import Path

import pytest

from weft.data.dialect import detect
from weft.data.files import read_rows
from weft.data.layout import PLAIN, Layout
from weft.data.problems import Problems
from weft.foundation.errors import UserError


def file(folder: Path, content: str | bytes, name: str = "a.tsv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path: Path, layout: Layout = PLAIN) -> list[str]:
    problems = Problems(path)
    found = [row.values["text"] for row in read_rows(path, problems, layout=layout)]
    problems.stop()
    return found


UNQUOTED = 'text\tlabel\n"Fog again", said the cook\t1\nthe "old" pier\t0\n"open and never closed\t1\nplain\t0\n'


def test_quotes_of_a_tsv_without_quoting_are_kept(tmp_path: Path) -> None:
    path = file(tmp_path, UNQUOTED)
    assert texts(path) == ['"Fog again", said the cook', 'the "old" pier', '"open and never closed', "plain"]
    assert detect(path, Layout()).ways == ("none", "csv")
    assert "quotes are part of the texts (3 rows have some)" in str(detect(path, Layout()))
    assert not detect(path, Layout()).is_obvious


def test_a_quote_that_a_later_line_closes_swallows_no_row(tmp_path: Path) -> None:
    path = file(tmp_path, 'text\tlabel\n"one starts\t1\nmiddle\t0\nthe end"\t1\nlast\t0\n')
    assert texts(path) == ['"one starts', "middle", 'the end"', "last"]


def test_a_tsv_whose_fields_are_enclosed_where_nothing_asks_for_it(tmp_path: Path) -> None:
    path = file(tmp_path, 'text\tlabel\n"all of it said"\t1\nnothing said\t0\nmore\t1\n')
    assert texts(path)[0] == '"all of it said"'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('text,label\n"one, two",1\nthree,0\n', ["one, two", "three"]),
        ('text,label\n"the ""old"" pier",1\nthree,0\n', ['the "old" pier', "three"]),
        ('text\tlabel\n"two\nlines"\t1\nthree\t0\n', ["two\nlines", "three"]),
        ('"text"\t"label"\n"one"\t"1"\n"two"\t"0"\n', ["one", "two"]),
        ('text\tlabel\n"one"\t1\n"two"\t0\n', ["one", "two"]),
        ('text\tlabel\n"a, b"\t1\nsheet\t0\nplain\t1\n', ["a, b", "sheet", "plain"]),
        ('text,label\nfine,1\n"quoted once",0\n', ["fine", "quoted once"]),
        ('text,label\n"comma, and break\nhere",1\nnext,0\n', ["comma, and break\nhere", "next"]),
    ],
)
def test_quotes_that_enclose_fields(tmp_path: Path, content: str, expected: list[str]) -> None:
    path = file(tmp_path, content)
    assert texts(path) == expected
    assert detect(path, Layout()).is_obvious


def test_no_row_is_lost_that_the_other_way_reads(tmp_path: Path) -> None:
    path = file(tmp_path, 'text,label\n"a, b",1\n"c ""d"" e",0\n"never closed,1\nlast,0\n', "a.csv")
    assert texts(path) == ["a, b", 'c "d" e', '"never closed', "last"]
    found = detect(path, Layout())
    assert (found.ways, found.exceptions) == (("csv", "none"), 1)
    assert "1 rows can only be read without quoting and are" in str(found)
    path = file(tmp_path, UNQUOTED + '"with\ta tab"\t1\n')
    assert texts(path)[-1] == "with\ta tab"
    assert detect(path, Layout()).exceptions == 1


def test_quoting_as_the_recipe_says(tmp_path: Path) -> None:
    path = file(tmp_path, 'text\tlabel\n"all of it"\t1\n"more, of it"\t0\n')
    assert texts(path, Layout(quoting="none")) == ['"all of it"', '"more, of it"']
    assert texts(path, Layout(quoting="csv")) == ["all of it", "more, of it"]
    with pytest.raises(UserError, match=r"a\.tsv:4: a quote opens here and is not closed properly$"):
        texts(file(tmp_path, UNQUOTED), Layout(quoting="csv"))
    with pytest.raises(UserError, match=r"a\.csv:2: has 3 fields, the header has 2$"):
        texts(file(tmp_path, 'text,label\n"a, b",1\n', "a.csv"), Layout(quoting="none"))


def test_what_divides_fields_is_what_fits_most_lines(tmp_path: Path) -> None:
    path = file(tmp_path, "fog, fog, and fog\t1\ncalm sea\t0\nwind; rain, and more\t1\n")
    rows = [row.values for row in read_rows(path, Problems(path), layout=Layout(header=False))]
    assert [row["1"] for row in rows] == ["fog, fog, and fog", "calm sea", "wind; rain, and more"]


def test_files_without_a_header(tmp_path: Path) -> None:
    path = file(tmp_path, "calm sea\t0\nwind\t1\n")
    named = Layout(header=False, columns=("text", "label"))
    assert [(row.line, row.values) for row in read_rows(path, Problems(path), layout=named)] == [
        (1, {"text": "calm sea", "label": "0"}),
        (2, {"text": "wind", "label": "1"}),
    ]
    with pytest.raises(UserError, match=r"a\.tsv:1: has 2 fields, but `columns` has 3 names"):
        detect(path, Layout(header=False, columns=("a", "b", "c")))
    with pytest.raises(UserError, match="stands twice in the header; if the file has no header, say `header = false`"):
        detect(file(tmp_path, "0\t0\ncalm\t1\n"), Layout())


def test_encodings(tmp_path: Path) -> None:
    content = "text;label\nein schöner Tag;1\nça alors;0\n"
    expected = ["ein schöner Tag", "ça alors"]
    latin = Layout(encoding="cp1252")
    for encoding in ("cp1252", "utf-8", "utf-8-sig"):  # UTF-8 is read as such even if the recipe says otherwise
        assert texts(file(tmp_path, content.encode(encoding), f"{encoding}.csv"), latin) == expected
    assert texts(file(tmp_path, content.encode("utf-16"), "b.csv"), Layout(encoding="utf-16")) == expected
    with pytest.raises(UserError, match=r'holds the byte 0xf6, which is not UTF-8; say `encoding = "cp1252"`'):
        texts(file(tmp_path, content.encode("cp1252"), "c.csv"))
    with pytest.raises(UserError, match="holds the byte 0x81, which is not cp1252"):
        texts(file(tmp_path, b"text;label\n\x81;1\n", "d.csv"), latin)
    with pytest.raises(UserError, match="cannot be read as csv"):
        texts(file(tmp_path, content.encode("utf-16") + b"x", "e.csv"), Layout(encoding="utf-16"))
