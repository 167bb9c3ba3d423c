"""Readers and recipes under random input: a clear refusal or an answer, never another exception."""

import ast
import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.tiny import recipe_content
from weft.data.files import read_rows
from weft.data.layout import Layout, Quoting
from weft.data.problems import Problems
from weft.foundation.errors import UserError
from weft.recipes.library import library
from weft.recipes.recipe import parse_recipe

SOURCE = Path(weft.__file__).parent
ENDINGS = st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
# pieces that matter to a reader are likelier than chance would make them
BYTES = st.lists(
    st.sampled_from(
        [
            b'"',
            b",",
            b"\t",
            b";",
            b"\n",
            b"\r\n",
            b"\0",
            b"\xff",
            b"\xef\xbb\xbf",
            b"text",
            b"{",
            b"}",
            b":",
            b'{"a": "b"}\n',
        ]
    )
    | st.binary(max_size=6),
    max_size=40,
).map(b"".join)


QUOTINGS: tuple[Quoting, ...] = ("auto", "none", "csv")
LAYOUTS = st.builds(
    Layout,
    quoting=st.sampled_from(QUOTINGS),
    encoding=st.sampled_from(["utf-8", "cp1252", "utf-16", "shift_jis"]),
    header=st.booleans(),
)


def read_anything(content: bytes, ending: str, layout: Layout) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{ending}"
        path.write_bytes(content)
        problems = Problems(path)
        with contextlib.suppress(UserError):
            for row in read_rows(path, problems, layout=layout):
                assert row.line >= 1
                for value in row.values.values():
                    value.encode()  # no surrogate gets through


@given(BYTES, ENDINGS, LAYOUTS)
@settings(max_examples=150)
def test_readers(content: bytes, ending: str, layout: Layout) -> None:
    read_anything(content, ending, layout)


@pytest.mark.long
@given(BYTES, ENDINGS, LAYOUTS)
@settings(max_examples=5000)
def test_readers_at_length(content: bytes, ending: str, layout: Layout) -> None:
    read_anything(content, ending, layout)


TSV = st.lists(st.sampled_from(['"', '""', "\t", "\n", "a", "b c", "x\ty\n", '"x"\ty\n']), max_size=30).map("".join)


def bad_lines(path: Path, layout: Layout) -> set[int]:
    problems = Problems(path)
    for _ in read_rows(path, problems, layout=layout):
        pass
    assert problems.counts.total() == len(problems.shown)
    return {line for line, _ in problems.shown}


@given(TSV)
@settings(max_examples=300)
def test_no_line_is_dropped_that_another_quoting_reads(content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.tsv"
        path.write_text("text\tlabel\n" + content[:60], encoding="utf-8", newline="")
        auto, none, quoted = (bad_lines(path, Layout(quoting=how)) for how in QUOTINGS)
    assert auto <= none
    assert auto <= quoted


@given(
    st.lists(st.tuples(st.text(max_size=12).filter(lambda t: "\0" not in t), st.integers(0, 3)), min_size=1, max_size=8)
)
def test_what_a_csv_writer_writes_is_read_back(rows: list[tuple[str, int]]) -> None:
    import csv

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as handle:
            writer = csv.writer(handle)
            writer.writerow(["text", "label"])
            try:
                writer.writerows(rows)
            except UnicodeEncodeError:
                return
        problems = Problems(path)
        found = [(row.values["text"], int(row.values["label"])) for row in read_rows(path, problems)]
    expected = [(text, n) for text, n in rows if not any(0xD800 <= ord(c) <= 0xDFFF for c in text)]
    assert found == expected


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6), v, max_size=3), max_leaves=8
)
KEYS = [
    "name",
    "body",
    "seed",
    "epochs",
    "max_length",
    "dropout",
    "tasks",
    "schedule",
    "weighting",
    "surgery",
    "phases",
    "penalties",
    "optimizer",
    "trainable",
    "log",
    "tasks.sentiment",
    "tasks.sentiment.data",
    "tasks.sentiment.loss",
    "tasks.sentiment.head",
    "tasks.sentiment.labels",
    "tasks.similarity.range",
    "optimizer.betas",
    "nonsense",
]


@given(st.sampled_from(KEYS), VALUES)
@settings(max_examples=300)
def test_recipes(key: str, value: Any) -> None:
    content = recipe_content(Path("/nowhere"))
    place: Any = content
    *tables, last = key.split(".")
    for table in tables:
        place = place[table]
    place[last] = value
    with contextlib.suppress(UserError):
        parse_recipe(content, "fuzz")


@given(st.sampled_from(sorted(library())), st.data())
@settings(max_examples=30)
def test_shipped_recipes_with_a_key_renamed(name: str, data: st.DataObject) -> None:
    content = {key: value for key, value in library()[name].content.items() if key != "tasks"} | {
        "tasks": dict(library()[name].content["tasks"])
    }
    key = data.draw(st.sampled_from(sorted(content)))
    content[f"{key}x"] = content.pop(key)
    with pytest.raises(UserError, match=f"{key}x: there is no such key; did you mean '{key}'"):
        parse_recipe(content, "fuzz")


def forbidden(tree: ast.AST) -> list[str]:
    """What would run code from a file: pickle, eval and their kin."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [
                name
                for name in names
                if name.split(".")[0] in {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}
            ]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            named = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if called in {"eval", "exec", "compile", "__import__", "os.system"}:
                found.append(called)
            if called == "torch.load" and named.get("weights_only") != "True":
                found.append(called)
            if called == "np.load" and named.get("allow_pickle", "False") != "False":
                found.append(called)
            if named.get("trust_remote_code", "False") != "False" or named.get("shell", "False") != "False":
                found.append(called)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_code_runs_from_a_file(path: Path) -> None:
    assert forbidden(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_what_is_forbidden_is_found() -> None:
    bad = "import pickle\neval('1')\ntorch.load(f)\nf(trust_remote_code=True)"
    assert forbidden(ast.parse(bad)) == ["pickle", "eval", "torch.load", "f"]
