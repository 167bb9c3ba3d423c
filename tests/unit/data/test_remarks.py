from pathlib import Path

from tests.tiny import write_rows
from weft.data.config import DataConfig
from weft.data.dataset import Dataset
from weft.data.readings import Reader
from weft.data.remarks import overlap, remarks
from weft.data.task_files import TaskFiles
from weft.data.tokenizer import Tokenizer
from weft.kinds.labels import Labels

YES_NO = Labels("classification", ("0", "1"))


def pairs(tiny: Path, path: Path, rows: list[tuple[str, str, str]], **options: object) -> Dataset:
    write_rows(path, [{"text": a, "text2": b, "label": label} for a, b, label in rows])
    config = DataConfig.model_validate({"text2": "text2", **options})
    tokenizer = Tokenizer.load(tiny / "body")
    reader = Reader("cross", tokenizer.template, 20)
    return TaskFiles("same", config, reader, tokenizer, seed=1).dataset_of(path, YES_NO)


def test_rows_in_both_sets_are_counted_in_any_case_and_order(tiny: Path, tmp_path: Path) -> None:
    train = pairs(tiny, tmp_path / "a.tsv", [("A cat", "a dog", "1"), ("x y", "z", "0"), ("one", "two", "0")])
    dev = pairs(tiny, tmp_path / "b.tsv", [("a DOG ", "a  cat", "1"), ("x y", "w", "0"), ("two", "one", "1")])
    assert overlap(train, dev) == 2
    assert remarks(train, dev) == ["same: 2 of 3 dev rows also occur in train and inflate the score"]


def test_what_was_skipped_and_masked_is_said(tiny: Path, tmp_path: Path) -> None:
    rows = [("write a@b.org", "x", "1"), ("", "y", "0"), ("z", "w", "maybe"), ("fine", "v", "0")]
    train = pairs(tiny, tmp_path / "a.tsv", rows, on_bad_rows="skip", mask=["email"])
    dev = pairs(tiny, tmp_path / "b.tsv", [("u", "t", "1")])
    assert len(train) == 2
    assert train.texts(0) == ["write [email]", "x"]
    source = tmp_path / "a.tsv"
    assert remarks(train, dev) == [
        f"{source}: 1 rows skipped (empty text)",
        f"{source}: 1 rows skipped (no usable label)",
        f"{source}: masked 1 x email",
    ]


def single(tiny: Path, path: Path, content: str, **options: object) -> Dataset:
    path.write_text(content, encoding="utf-8")
    config = DataConfig.model_validate(options)
    tokenizer = Tokenizer.load(tiny / "body")
    reader = Reader("single", tokenizer.template, 20)
    return TaskFiles("mood", config, reader, tokenizer, seed=1).dataset_of(path, YES_NO)


ROWS = "".join(f"the film number {i} is fine\t{i % 2}\n" for i in range(12))


def test_a_header_that_looks_like_a_row_is_a_warning(tiny: Path, tmp_path: Path) -> None:
    columns = {"text": "the quiet harbour woke", "label": "1"}
    train = single(tiny, tmp_path / "a.tsv", "the quiet harbour woke\t1\n" + ROWS, **columns)
    (found,) = [remark for remark in remarks(train, train) if remark.startswith("warning: ")]
    assert f"{tmp_path / 'a.tsv'}:1: the header looks like a row ('the quiet harbour woke', '1')" in found
    whole = {"header": False, "columns": ["text", "label"]}
    assert len(single(tiny, tmp_path / "a.tsv", "the quiet harbour woke\t1\n" + ROWS, **whole)) == 13
    for header in ("text\tlabel", "What did you like about it?\tAgain?", "0\t1"):
        text, label = header.split("\t")
        named = single(tiny, tmp_path / "b.tsv", f"{header}\n{ROWS}", text=text, label=label)
        assert not [remark for remark in remarks(named, named) if remark.startswith("warning: ")]


def test_how_a_file_was_read_is_said_where_it_is_not_obvious(tiny: Path, tmp_path: Path) -> None:
    train = single(tiny, tmp_path / "a.tsv", f'text\tlabel\n"so it goes\t1\n{ROWS}')
    assert f"{tmp_path / 'a.tsv'}: fields divided by tabs, quotes are part of the texts (1 rows have some), UTF-8" in (
        remarks(train, train)
    )
    plain = single(tiny, tmp_path / "b.tsv", f"text\tlabel\n{ROWS}")
    assert not [remark for remark in remarks(plain, plain) if "quotes" in remark]
