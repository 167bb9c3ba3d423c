import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.tiny import write_rows
from weft.data import tokens, word_tokens
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import tokenize_file
from weft.foundation.errors import UserError


@pytest.fixture
def tokenizer(tiny: Path) -> Tokenizer:
    return Tokenizer.load(tiny / "body")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(n: int) -> list[dict[str, object]]:
    return [{"text": f"the film {i}", "other": f"a {i % 3} dog", "label": i % 2} for i in range(n)]


def test_ids_are_those_of_the_tokenizer_over_several_chunks(
    tmp_path: Path, cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "CHUNK", 7)
    content = rows(24)
    file = tokenize_file(write_rows(tmp_path / "a.tsv", content), ["text", "other"], tokenizer)
    assert len(file) == 24
    for column in ("text", "other"):
        expected = tokenizer.encode([str(row[column]) for row in content])
        assert [file.ids(column, i).tolist() for i in range(24)] == expected
        assert file.lengths(column).tolist() == [len(ids) for ids in expected]
    assert file.text("other", 8) == "a 2 dog"
    assert file.line(8) == 10
    assert file.strings("label").to_pylist() == [str(i % 2) for i in range(24)]
    assert len(list(cache.glob("*.arrow"))) == 1


def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_rows(tmp_path / "a.tsv", rows(3))
    tokenize_file(path, ["text"], tokenizer)
    monkeypatch.setattr(tokens, "read_rows", lambda *_: pytest.fail("the file was parsed again"))
    monkeypatch.setattr(tokens.hashlib, "file_digest", lambda *_: pytest.fail("the file was hashed again"))
    assert len(tokenize_file(path, ["text"], tokenizer)) == 3
    assert cache.exists()


def test_changed_content_is_noticed(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    path = write_rows(tmp_path / "a.tsv", rows(3))
    assert len(tokenize_file(path, ["text"], tokenizer)) == 3
    write_rows(path, rows(5))
    assert len(tokenize_file(path, ["text"], tokenizer)) == 5
    stamp = path.stat()
    write_rows(path, [{**row, "text": "a cat"} for row in rows(5)])
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert tokenize_file(path, ["text"], tokenizer).text("text", 0) == "a cat"


def test_a_damaged_index_is_rebuilt(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    path = write_rows(tmp_path / "a.tsv", rows(3))
    tokenize_file(path, ["text"], tokenizer)
    for entry in (cache / "index").iterdir():
        entry.write_text("[1]", encoding="utf-8")
    assert len(tokenize_file(path, ["text"], tokenizer)) == 3


def _length(path: Path, body: Path) -> int:
    return len(tokenize_file(path, ["text"], Tokenizer.load(body)))


def test_two_processes_build_one_cache(tmp_path: Path, cache: Path, tiny: Path) -> None:
    path = write_rows(tmp_path / "a.tsv", rows(3000))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        lengths = list(pool.map(_length, [path] * 4, [tiny / "body"] * 4))
    assert lengths == [3000] * 4
    assert sorted(p.suffix for p in cache.iterdir() if p.is_file()) == [".arrow", ".json"]


def test_problems_leave_no_cache_behind(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ngood\t1\n  \t0\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.tsv:3: column 'text' is empty"):
        tokenize_file(path, ["text"], tokenizer)
    with pytest.raises(UserError, match="there is no column 'review'; the columns are 'text', 'label'"):
        tokenize_file(path, ["review"], tokenizer)
    assert not list(cache.glob("*.arrow"))
    assert not list(cache.glob("*.tmp"))


def test_a_header_without_rows(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n", encoding="utf-8")
    with pytest.raises(UserError, match="has a header but no rows"):
        tokenize_file(path, ["text"], tokenizer)


def test_tokens_are_a_view_into_the_file(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    ids = tokenize_file(write_rows(tmp_path / "a.tsv", rows(3)), ["text"], tokenizer).ids("text", 1)
    assert not ids.flags.owndata
    assert ids.dtype == np.int32


def test_empty_texts_by_their_own_rule(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ngood\t1\n  \t0\nbad\t0\n", encoding="utf-8")
    kept = tokenize_file(path, ["text"], tokenizer, on_empty="keep")
    assert [len(kept.ids("text", row)) > 0 for row in range(3)] == [True, False, True]
    skipped = tokenize_file(path, ["text"], tokenizer, on_empty="skip")
    assert (len(skipped), skipped.skipped) == (2, {"empty text": 1})
    with pytest.raises(UserError, match=r"a\.tsv:3: column 'text' is empty, expected a text \(see on_empty\)"):
        tokenize_file(path, ["text"], tokenizer, skip_bad_rows=True, on_empty="error")
    path.write_text("text\tlabel\n  \t0\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"leaves no row: all were skipped \(1 x empty text\)"):
        tokenize_file(path, ["text"], tokenizer, on_empty="skip")
    assert len(tokenize_file(path, ["text"], tokenizer, on_empty="keep")) == 1


def test_long_texts_are_tokenized_in_parts(
    tmp_path: Path, cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_tokens, "CHARACTERS", 30)
    content = [{"text": "the film " * (1 + i % 9), "label": i % 2} for i in range(20)]
    file = tokenize_file(write_rows(tmp_path / "a.tsv", content), ["text"], tokenizer)
    expected = tokenizer.encode([str(row["text"]) for row in content])
    assert [file.ids("text", i).tolist() for i in range(20)] == expected


def test_a_changed_cache_file_is_built_again(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    """Rewritten labels must not change what a run sees, whatever the time stamps say."""
    path = write_rows(tmp_path / "a.tsv", rows(30))
    before = tokenize_file(path, ["text"], tokenizer).strings("label").to_pylist()
    (file,) = cache.glob("*.arrow")
    stamp = file.stat()
    table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    at = table.column_names.index("column/label")
    forged = table.set_column(at, table.schema.field(at), pa.array(["1"] * 30))
    with pa.ipc.new_file(str(file), forged.schema) as sink:
        sink.write_table(forged)
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert tokenize_file(path, ["text"], tokenizer).strings("label").to_pylist() == before


@pytest.mark.parametrize("damage", ["flip", "cut", "notes", "no notes"])
def test_a_damaged_cache_file_is_built_again(tmp_path: Path, cache: Path, tokenizer: Tokenizer, damage: str) -> None:
    path = write_rows(tmp_path / "a.tsv", rows(30))
    expected = tokenize_file(path, ["text"], tokenizer).ids("text", 7).tolist()
    (file,) = cache.glob("*.arrow")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "flip":
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(content[:100])
    elif damage == "notes":
        file.with_suffix(".json").write_text('["digest"]')
    else:
        file.with_suffix(".json").unlink()
    assert tokenize_file(path, ["text"], tokenizer).ids("text", 7).tolist() == expected


def test_the_cache_is_private(tmp_path: Path, cache: Path, tokenizer: Tokenizer) -> None:
    cache.mkdir(mode=0o755)
    tokenize_file(write_rows(tmp_path / "a.tsv", rows(3)), ["text"], tokenizer)
    assert cache.stat().st_mode & 0o777 == 0o700
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_the_cache_of_another_user_is_rejected(
    tmp_path: Path, cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(UserError, match="the token cache belongs to another user; set WEFT_CACHE"):
        tokenize_file(write_rows(tmp_path / "a.tsv", rows(3)), ["text"], tokenizer)
