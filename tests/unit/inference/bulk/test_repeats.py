"""A text that occurs in several shards goes through the body once, and predictions do not change."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exported import write_model
from tests.texts import WORDS
from tests.tiny import write_rows
from weft.export import export
from weft.foundation.errors import Interrupted
from weft.inference import onnx_engine, passes
from weft.inference.bulk import repeats
from weft.inference.bulk.job import BulkJob, QuietBulk
from weft.inference.bulk.parts import Parts, parts_folder
from weft.inference.bulk.repeats import ShardRepeats, TextUnit
from weft.inference.bulk.work import Answers, Vectors, Work
from weft.inference.memory import EncodedTexts
from weft.inference.model import Model, load

TASKS = {
    "mood": {"like": "sentiment"},
    "same": {"like": "paraphrase"},
    "near": {"like": "similarity", "reading": "bi"},
}
TEXTS = [" ".join(WORDS[(5 * i + k) % len(WORDS)] for k in range(1 + i % 7)) for i in range(20)]
ROWS = [{"text": TEXTS[i % 13], "text2": TEXTS[i * i % 17]} for i in range(50)]
"""13 and 17 texts, none of them in one shard only; row 49 is the pair of row 10"""
ROWS[49] = ROWS[10]
SHARD = 8


class Encoded:
    """Counts the sequences that the engines encode."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._watch(monkeypatch, passes, "by_length")
        self._watch(monkeypatch, onnx_engine, "padded_groups")

    def _watch(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def watched(sequences: Sequence[object], *rest: int) -> Iterable[list[int]]:
            self.count += len(sequences)
            return real(sequences, *rest)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, name, watched)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Encoded:
    return Encoded(monkeypatch)


@pytest.fixture(scope="module", params=["torch", "onnx", "adapters"])
def folder(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp(request.param)
    changes: dict[str, Any] = {"adapter": {"name": "lora", "per_task": True}} if request.param == "adapters" else {}
    made = write_model(tiny, place, TASKS, **changes)
    if request.param != "onnx":
        return made
    export(made, "onnx", place / "onnx")
    return place / "onnx"


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder, "cpu")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.tsv", ROWS)


def job(folder: Path, source: Path, work: Work, output: str = "out.parquet") -> BulkJob:
    return BulkJob(folder, work, source, source.parent / output, "cpu", shard_rows=SHARD)


def distinct_sequences(model: Model, tasks: Sequence[str]) -> int:
    """Of the tasks of a reading, or of each task if it has adapters of its own; ONNX has a graph for each reading."""
    found = set()
    shares = hasattr(model.engine, "network") and model.engine.network.shares_states
    for task in tasks:
        texts = [[row[name] for row in ROWS] for name in ("text", "text2")[: len(model.columns(task))]]
        found |= {("all" if shares else task, *one.key) for row in model.rows(task, *texts) for one in row}
    return len(found)


@pytest.mark.parametrize("tasks", [("mood",), ("same",), ("near",), ("mood", "same", "near")])
def test_every_text_of_a_file_is_encoded_once(
    folder: Path, model: Model, source: Path, encoded: Encoded, tasks: tuple[str, ...]
) -> None:
    job(folder, source, Answers(tasks)).run(QuietBulk())
    assert encoded.count == distinct_sequences(model, tasks)
    rows = pq.read_table(source.parent / "out.parquet").to_pylist()
    for task in tasks:
        texts = [[row[name] for row in ROWS] for name in ("text", "text2")[: len(model.columns(task))]]
        score = "score" if len(tasks) == 1 else f"{task}.score"
        expected = [answer.score for answer in model.predict(task, *texts)]
        assert [row[score] for row in rows] == pytest.approx(expected, rel=2e-6, abs=2e-6)


def test_embeddings_too(folder: Path, model: Model, source: Path, encoded: Encoded) -> None:
    job(folder, source, Vectors("near"), "out.npy").run(QuietBulk())
    assert encoded.count == 13
    expected = model.embed([row["text"] for row in ROWS], "near")
    np.testing.assert_allclose(np.load(source.parent / "out.npy"), expected, atol=1e-6)


def test_what_was_encoded_before_an_interruption_is_read_back(
    folder: Path, source: Path, encoded: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Answers(("mood", "near"))
    job(folder, source, work, "straight.parquet").run(QuietBulk())
    once, encoded.count = encoded.count, 0
    real = Parts.write_aside

    def stop_at_the_second(parts: Parts, name: str, content: bytes) -> None:
        real(parts, name, content)
        if name.startswith("00000001"):
            raise KeyboardInterrupt

    monkeypatch.setattr(Parts, "write_aside", stop_at_the_second)
    with pytest.raises(Interrupted, match="run the same command to continue"):
        job(folder, source, work).run(QuietBulk())
    output = source.parent / "out.parquet"
    assert len(list((parts_folder(output) / "aside").iterdir())) == 2
    monkeypatch.setattr(Parts, "write_aside", real)
    job(folder, source, work).run(QuietBulk())
    assert encoded.count == once
    assert output.read_bytes() == (source.parent / "straight.parquet").read_bytes()


CELLS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcxyz")), max_size=24)


@given(CELLS, st.integers(1, 6), st.booleans())
def test_the_rows_hold_every_text_that_crosses_shards(
    cells: list[tuple[str, str]], shard_rows: int, joint: bool
) -> None:
    units = (
        [TextUnit(0, ("text", "text2"))]
        if joint
        else [TextUnit(0, ("text",)), TextUnit(0, ("text2",)), TextUnit(1, ("text",))]
    )
    found = ShardRepeats(units, shard_rows)
    shards, first = defaultdict(set), {}
    for row, pair in enumerate(cells):
        values = dict(zip(("text", "text2"), pair, strict=True))
        found.see(values)
        for unit in units:
            text = unit.reader, *(values[name] for name in unit.columns)
            shards[text].add(row // shard_rows)
            first.setdefault(text, row)
    assert found.rows() == tuple(sorted({first[text] for text, own in shards.items() if len(own) > 1}))


def test_the_most_frequent_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MOST", 2)
    found = ShardRepeats([TextUnit(0, ("text",))], 1)
    for text in "abcdbcdcdc":
        found.see({"text": text})
    assert found.rows() == (2, 3)


def test_memory_keeps_bits_and_shapes(model: Model) -> None:
    sequences = [row[0] for row in model.rows("mood", TEXTS[:4])]
    draw = np.random.default_rng(1)
    given = {
        "vector": {i: draw.standard_normal(5, dtype=np.float32) for i in range(3)},
        "number": {i: np.float64(draw.standard_normal()) for i in range(3)},
        "tokens": {i: draw.standard_normal((i + 1, 3), dtype=np.float32) for i in range(3)},
        "other": {3: draw.standard_normal(2)},
    }
    wanted = [["vector", "number", "tokens"]] * 3 + [["other"]]
    memory, asked = EncodedTexts(), []

    def compute(indices: list[int]) -> dict[str, dict[int, Any]]:
        asked.append(indices)
        return {name: {i: row for i, row in own.items() if i in indices} for name, own in given.items()}

    memory.records = True
    memory.outputs(sequences, wanted, compute)
    memory.add(memory.recorded())
    other = EncodedTexts()
    for chunk in memory.chunks:
        other.add(chunk)
    recalled = other.outputs(sequences, wanted, compute)
    assert asked == [[0, 1, 2, 3]]
    for name, rows in given.items():
        assert recalled[name].keys() == rows.keys()
        for i, row in rows.items():
            assert recalled[name][i].dtype == row.dtype
            assert recalled[name][i].shape == row.shape
            assert np.array_equal(recalled[name][i], row)
    other.outputs(sequences, [["vector"]] * 4, lambda indices: {"vector": dict.fromkeys(indices, np.zeros(5))})
    other.outputs(sequences[:1], [["other"]], lambda indices: asked.append(indices) or {"other": {0: np.zeros(2)}})
    assert asked[-1] == [0]  # other outputs of a known sequence are not known
