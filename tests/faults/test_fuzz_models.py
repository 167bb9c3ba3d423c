"""What strangers write, changed at random: weft.json, tokenizer.json, config.json, parquet files and recipe files.

Loaded and used, or rejected by a UserError; never another exception. `make test-all` tries 7,000 inputs here and 5,000
in `test_fuzz.py`; the short tests try 25 to 100 each.
"""

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from tests.exported import write_model
from tests.faults.test_fuzz import VALUES, read_anything
from tests.faults.test_hostile_models import reseal
from tests.tiny import recipe_content
from weft.data.layout import PLAIN
from weft.foundation.content import toml_text
from weft.foundation.errors import UserError
from weft.recipes.recipe import load_recipe

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
ODD = st.sampled_from(
    [0, -1, 1, 2**31, 2_000_000_000, 2**63, 10**30, 1e308, -0.0, "", "[CLS]", "\x00", [], {}, None, True]
)
CHANGES = VALUES | ODD


@pytest.fixture(scope="module")
def sound(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = {"mood": {"like": "sentiment"}, "score": {"like": "similarity"}}
    return write_model(tiny, tmp_path_factory.mktemp("fuzz"), tasks, calibrate=True)


def places(content: Any, depth: int = 5) -> list[tuple[Any, ...]]:
    """The keys on the way to every value; of a long list or table only the first few."""
    if depth == 0 or not isinstance(content, dict | list):
        return []
    keys = list(content)[:12] if isinstance(content, dict) else list(range(min(len(content), 4)))
    return [(key, *rest) for key in keys for rest in [(), *places(content[key], depth - 1)]]


def changed(content: Any, data: st.DataObject) -> Any:
    """The same with one to three values replaced, or left out."""
    content = json.loads(json.dumps(content))
    for _ in range(data.draw(st.integers(1, 3))):
        possible = places(content)
        if not possible:
            break
        *way, last = data.draw(st.sampled_from(possible))
        inner = content
        for key in way:
            inner = inner[key]
        if isinstance(inner, dict) and data.draw(st.booleans()) and data.draw(st.booleans()):
            del inner[last]
        else:
            inner[last] = data.draw(CHANGES)
    return content


def use(folder: Path) -> None:
    """Load a model and ask it; whatever it says, it says it without a fault."""
    with contextlib.suppress(UserError):
        model = weft.load(folder, "cpu")
        for task in model.tasks:
            pair = len(model.columns(task)) > 1
            model.predict(task, ["a warm film the cat sees"], ["a dog"] if pair else None)


def fuzz(sound: Path, name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(sound, Path(place) / "model"))
        content = changed(json.loads((folder / name).read_text()), data)
        if name == "weft.json":
            content = content if isinstance(content, dict) else {}
            (folder / name).write_text(json.dumps({"checksums": {}, "own_checksum": ""} | content))
            with contextlib.suppress(AttributeError, TypeError, OSError, ValueError):  # checksums that are none
                reseal(folder)
        else:
            (folder / name).write_text(json.dumps(content))
            reseal(folder)
        use(folder)


FILES = ["weft.json", "tokenizer.json", "config.json"]


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=SHARED)
def test_files_of_a_model(sound: Path, name: str, data: st.DataObject) -> None:
    fuzz(sound, name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=1000, suppress_health_check=SHARED)
def test_files_of_a_model_at_length(sound: Path, name: str, data: st.DataObject) -> None:
    fuzz(sound, name, data)


def parquet(**options: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table(
        {
            "text": [f"a warm film {i % 7}" for i in range(40)],
            "label": [["a", None], [], ["b"], None] * 10,
            "number": pa.array(range(40), pa.int64()),
            "when": pa.array(range(40), pa.timestamp("us")),
        }
    )
    pq.write_table(table, sink, **options)
    return sink.getvalue()


PARQUET = [
    parquet(),
    parquet(compression="zstd", row_group_size=7),
    parquet(use_dictionary=False, column_encoding="PLAIN", compression="none", data_page_version="2.0"),
]


def fuzz_parquet(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(PARQUET)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    read_anything(bytes(content), ".parquet", PLAIN)


@given(st.data())
@settings(max_examples=100)
def test_parquet(data: st.DataObject) -> None:
    fuzz_parquet(data)


@pytest.mark.long
@given(st.data())
@settings(max_examples=2000)
def test_parquet_at_length(data: st.DataObject) -> None:
    fuzz_parquet(data)


RECIPE = toml_text(recipe_content(Path("/nowhere")))
PIECES = st.sampled_from(
    ["[", "]", "{", "}", "=", '"', "'", '"""', "\n", ".", "tasks", "name", "\\u", "#", "1e999", "\x00"]
)


def fuzz_recipe(data: st.DataObject) -> None:
    text = RECIPE
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        text = text[:at] + data.draw(PIECES | st.text(max_size=4)) + text[at + cut :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(UserError):
            load_recipe(path)


@given(st.data())
@settings(max_examples=100)
def test_recipe_files(data: st.DataObject) -> None:
    fuzz_recipe(data)


@pytest.mark.long
@given(st.data())
@settings(max_examples=2000)
def test_recipe_files_at_length(data: st.DataObject) -> None:
    fuzz_recipe(data)


def test_a_recipe_nested_beyond_reason(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(UserError, match="is not TOML"):
        load_recipe(tmp_path / "r.toml")
