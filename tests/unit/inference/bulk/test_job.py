"""A file in, a file out: every row once, in order, the same bytes however often the work was cut off."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.exported import write_model
from tests.texts import WORDS
from tests.tiny import write_rows
from weft.foundation.errors import Interrupted, RunError, UserError
from weft.inference.bulk.formats import FORMATS
from weft.inference.bulk.job import BulkJob
from weft.inference.bulk.on_ray import OnRay, Worker
from weft.inference.bulk.parts import parts_folder
from weft.inference.bulk.work import Answers, Vectors, Work
from weft.inference.model import Model, load

ROWS = 60
TASKS = {
    "mood": {"like": "sentiment"},
    "same": {"like": "paraphrase"},
    "near": {"like": "similarity"},
    "tags": {"like": "sentiment", "kind": "multilabel"},
}
TEXTS = [" ".join(WORDS[(3 * i + k) % len(WORDS)] for k in range(1 + i % 9)) for i in range(ROWS - 3)] + ["fog"] * 3


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("bulk"), TASKS)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder, "cpu")


class Watch:
    """A listener that may do something after some shards."""

    def __init__(self, after: int = -1, act: Callable[[], None] | None = None) -> None:
        self.after, self.act = after, act
        self.begun_with = -1
        self.shards = 0
        self.notes: list[str] = []

    def started(self, done: int, rows: int) -> None:  # noqa: ARG002
        self.begun_with = done

    def advanced(self, rows: int) -> None:  # noqa: ARG002
        self.shards += 1
        if self.shards == self.after and self.act:
            self.act()

    def noted(self, message: str) -> None:
        self.notes.append(message)


def ctrl_c() -> None:
    raise KeyboardInterrupt


def texts_file(folder: Path, ending: str = ".csv", second: bool = False, name: str = "in") -> Path:
    rows = [{"id": i, "text": text} | ({"text2": TEXTS[i // 2]} if second else {}) for i, text in enumerate(TEXTS)]
    path = folder / f"{name}{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=25)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write_rows(path, rows, delimiter="," if ending == ".csv" else "\t")
    return path


def job(folder: Path, source: Path, output: Path, work: Work = Answers(("mood",)), **changes: Any) -> BulkJob:  # noqa: B008
    return BulkJob(folder, work, source, output, **{"device": "cpu", "shard_rows": 7} | changes)


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_those_of_predict(folder: Path, model: Model, tmp_path: Path, task: str) -> None:
    pair = task in ("same", "near")
    source = texts_file(tmp_path, second=pair)
    assert job(folder, source, tmp_path / "out.parquet", Answers((task,))).run(Watch()) == ROWS
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    expected = model.predict(task, TEXTS, [TEXTS[i // 2] for i in range(ROWS)] if pair else None)
    assert [row.get("label") for row in rows] == [answer.label for answer in expected]
    assert [row["score"] for row in rows] == pytest.approx([answer.score for answer in expected], rel=2e-6, abs=2e-6)
    for label, p in (expected[5].probabilities or {}).items():
        assert rows[5][f"p_{label}"] == pytest.approx(p, abs=2e-6)
    assert {row["task"] for row in rows} == {task}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_goes_in(folder: Path, tmp_path: Path, ending: str) -> None:
    job(folder, texts_file(tmp_path), tmp_path / "expected.csv").run(Watch())
    job(folder, texts_file(tmp_path, ending), tmp_path / "out.csv").run(Watch())
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


@pytest.mark.parametrize("shard_rows", [1, 13, 4096])
def test_neighbours_in_a_shard_do_not_matter(folder: Path, model: Model, tmp_path: Path, shard_rows: int) -> None:
    source = texts_file(tmp_path)
    job(folder, source, tmp_path / "v.npy", Vectors(None), shard_rows=shard_rows).run(Watch())
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), model.embed(TEXTS), atol=1e-6)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".npy"])
def test_stopped_and_started_again_gives_the_same_bytes(folder: Path, tmp_path: Path, ending: str) -> None:
    work: Work = Vectors("near") if ending == ".npy" else Answers(("mood",))
    source = texts_file(tmp_path)
    job(folder, source, tmp_path / f"straight{ending}", work).run(Watch())
    output = tmp_path / f"out{ending}"
    for stop in (2, 1, 3):
        with pytest.raises(Interrupted, match="what is answered is kept in .*parts: run the same command to continue"):
            job(folder, source, output, work).run(Watch(stop, ctrl_c))
        assert not output.exists()
    last = Watch()
    job(folder, source, output, work).run(last)
    assert last.begun_with == 6 * 7
    assert last.notes == ["going on after 42 of 60 rows"]
    assert last.shards == 3
    assert output.read_bytes() == (tmp_path / f"straight{ending}").read_bytes()
    assert not parts_folder(output).exists()


def begun(folder: Path, source: Path, output: Path) -> None:
    with pytest.raises(Interrupted):
        job(folder, source, output).run(Watch(2, ctrl_c))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"work": Answers(("tags",))}, "work"),
        ({"shard_rows": 8}, "shard size"),
        ({"source": "other"}, "input"),
        ({"folder": "other"}, "model"),
    ],
)
def test_other_work_begins_anew_and_says_so(
    folder: Path, tiny: Path, tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    source, output = texts_file(tmp_path), tmp_path / "out.csv"
    begun(folder, source, output)
    if changes.get("source"):
        changes["source"] = texts_file(tmp_path, ".jsonl")
    if changes.get("folder"):
        changes["folder"] = write_model(tiny, tmp_path, TASKS, seed=5)
    watch = Watch()
    job(**{"folder": folder, "source": source, "output": output} | changes).run(watch)
    assert watch.notes == [f"{output}.parts is of another {what}: beginning anew"]
    assert watch.begun_with == 0


def test_a_file_that_was_only_touched_is_the_same_file(folder: Path, tmp_path: Path) -> None:
    source, output = texts_file(tmp_path), tmp_path / "out.csv"
    begun(folder, source, output)
    os.utime(source, (1, 1))
    watch = Watch()
    job(folder, source, output).run(watch)
    assert watch.begun_with == 14


BAD = {
    "too few fields": ("70\n", ":62: has 1 fields, the header has 2"),
    "a NUL byte": ("70,a\0b\n", ":62: column 'text' holds a NUL byte"),
    "an open quote": ('70,"a, b\n', ":62: a quote opens here and is not closed"),
    "not UTF-8": (b"70,caf\xe9\n", ":62: column 'text' holds the byte 0xe9"),
    "endless": (f"70,{'a' * 1_000_001}\n", ":62: column 'text' is 1,000,001 characters long"),
}


@pytest.mark.parametrize(("row", "message"), BAD.values(), ids=BAD)
def test_a_bad_last_row_is_heard_of_before_anything_is_done(
    folder: Path, tmp_path: Path, row: str | bytes, message: str
) -> None:
    source, output = texts_file(tmp_path), tmp_path / "out.csv"
    begun(folder, source, output)
    kept = {path.name: path.read_bytes() for path in parts_folder(output).rglob("*") if path.is_file()}
    bad = tmp_path / "bad.csv"
    bad.write_bytes(source.read_bytes() + (row if isinstance(row, bytes) else row.encode()))
    for target in (output, tmp_path / "new.csv"):
        with pytest.raises(UserError, match=message):
            job(folder, bad, target).run(Watch())
    assert {path.name: path.read_bytes() for path in parts_folder(output).rglob("*") if path.is_file()} == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "in.csv", "out.csv.parts"]


def test_a_text_of_a_million_characters_is_answered(folder: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.tsv", [{"text": "fog " * 250_000}, {"text": "fog"}])
    assert job(folder, source, tmp_path / "out.csv").run(Watch()) == 2


def test_only_the_columns_that_matter_are_read_of_a_parquet_file(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["fog"], "other": ["a\0b"]}), source)
    assert job(folder, source, tmp_path / "out.csv").run(Watch()) == 1
    with pytest.raises(UserError, match="there is no column 'a'; the columns are 'text', 'other'"):
        job(folder, source, tmp_path / "out.csv", Answers(("same",))).run(Watch())


def test_a_file_that_grows_while_it_is_read(folder: Path, tmp_path: Path) -> None:
    source, output = texts_file(tmp_path), tmp_path / "out.csv"

    def grow() -> None:
        with source.open("a") as file:
            file.write("61,one more\n")

    with pytest.raises(UserError, match="was changed while it was read"):
        job(folder, source, output).run(Watch(3, grow))
    assert not output.exists()
    assert job(folder, source, output).run(Watch()) == ROWS + 1


def test_a_full_disk_keeps_what_is_answered(folder: Path, tmp_path: Path) -> None:
    def full() -> None:
        raise OSError("No space left on device")

    with pytest.raises(RunError, match=r"No space left on device; what is answered is kept in .*out.csv.parts"):
        job(folder, texts_file(tmp_path), tmp_path / "out.csv").run(Watch(2, full))
    assert len(list(parts_folder(tmp_path / "out.csv").glob("*.part"))) == 2


def test_a_header_without_rows(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\n")
    assert job(folder, tmp_path / "in.csv", tmp_path / "out.csv").run(Watch()) == 0
    assert (tmp_path / "out.csv").read_text() == "task,label,score,p_bad,p_good\n"


def test_what_cannot_be_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = texts_file(tmp_path)
    for changes, message in (
        ({"executor": "slurm"}, "--executor slurm: expected local or ray"),
        ({"shard_rows": 0}, "--shard-rows 0: expected at least 1"),
    ):
        with pytest.raises(UserError, match=message):
            job(folder, source, tmp_path / "out.csv", **changes)
    before = source.read_bytes()
    with pytest.raises(UserError, match="is the input; choose another output"):
        job(folder, source, source)
    assert source.read_bytes() == before
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r'pip install "weft\[cluster\]"'):
        job(folder, source, tmp_path / "out.csv", executor="ray").run(Watch())
    assert not parts_folder(tmp_path / "out.csv").exists()


def test_rows_of_a_changed_file_are_never_taken_for_those_of_the_old(folder: Path, tmp_path: Path) -> None:
    source = texts_file(tmp_path)
    job(folder, source, tmp_path / "straight.csv").run(Watch())
    before = source.read_bytes()

    def change() -> None:
        source.write_bytes(before.replace(WORDS[0].encode(), b"x" * len(WORDS[0])))
        os.utime(source, (1, 1))

    with pytest.raises(UserError, match="was changed while it was read"):
        job(folder, source, tmp_path / "out.csv").run(Watch(2, change))
    source.write_bytes(before)
    last = Watch()
    job(folder, source, tmp_path / "out.csv").run(last)
    assert last.begun_with == 2 * 7
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "straight.csv").read_bytes()


def test_a_worker_that_finds_another_model_refuses(folder: Path) -> None:
    with pytest.raises(RunError, match="found another model there"):
        Worker([], folder, "not its digest", "cpu", Answers(("mood",)), FORMATS[".csv"], torch.get_num_threads())


def test_workers_that_fit_on_no_machine_are_refused(folder: Path) -> None:
    executor = OnRay(folder, "", "cpu", Answers(("mood",)), FORMATS[".csv"])
    executor.threads = 4
    ray = SimpleNamespace(nodes=lambda: [{"Alive": True, "Resources": {"CPU": cpus}} for cpus in (3.0, 2.0)])
    with pytest.raises(UserError, match="a worker needs 4 processors of one machine, and no machine"):
        executor._room(ray)
    executor.threads = 2
    assert executor._room(ray) == 2


def test_several_tasks_are_columns_beside_each_other(folder: Path, model: Model, tmp_path: Path) -> None:
    source = texts_file(tmp_path, second=True)
    job(folder, source, tmp_path / "out.parquet", Answers(("tags", "near", "mood"))).run(Watch())
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == [
        *("id", "text", "text2"),
        *("tags.label", "tags.score", "tags.p_bad", "tags.p_good"),
        "near.score",
        *("mood.label", "mood.score", "mood.p_bad", "mood.p_good"),
    ]
    expected = model.predict("near", TEXTS, [TEXTS[i // 2] for i in range(ROWS)])
    assert table["near.score"].to_pylist() == pytest.approx([one.score for one in expected], rel=2e-6, abs=2e-6)
    assert table["mood.label"].to_pylist() == [one.label for one in model.predict("mood", TEXTS)]
    assert table["tags.label"].to_pylist() == [one.label for one in model.predict("tags", TEXTS)]
    job(folder, source, tmp_path / "all.parquet", Answers(None)).run(Watch())
    every = pq.read_table(tmp_path / "all.parquet").column_names
    assert [name for name in every if name.endswith(".score")] == [
        "mood.score",
        "same.score",
        "near.score",
        "tags.score",
    ]


def test_several_tasks_stopped_and_started_again(folder: Path, tmp_path: Path) -> None:
    work = Answers(None)
    for ending in (".jsonl", ".parquet"):
        source = texts_file(tmp_path, ending, second=True)
        straight, output = tmp_path / f"straight{ending}", tmp_path / f"out{ending}"
        job(folder, source, straight, work).run(Watch())
        for stop in (2, 3):
            with pytest.raises(Interrupted):
                job(folder, source, output, work).run(Watch(stop, ctrl_c))
        last = Watch()
        job(folder, source, output, work).run(last)
        assert last.begun_with == 5 * 7
        assert output.read_bytes() == straight.read_bytes()


MIXED = [
    {"id": 7, "text": "fog", "share": 0.5, "paid": True, "tags": ["a"], "odd": 1, "none": None},
    {"id": 8, "text": "a lovely film", "share": 2, "paid": False, "tags": [], "odd": "x", "none": None},
]


def test_the_inputs_columns_keep_their_types(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in MIXED))
    job(folder, source, tmp_path / "out.jsonl").run(Watch())
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert list(rows[0])[: len(MIXED[0])] == list(MIXED[0])
    for found, given in zip(rows, MIXED, strict=True):
        expected = given | {"tags": json.dumps(given["tags"]), "odd": str(given["odd"])}  # of mixed types: as text
        assert {key: found[key] for key in given} == expected
    job(folder, source, tmp_path / "out.parquet").run(Watch())
    schema = pq.read_schema(tmp_path / "out.parquet")
    kinds = {name: str(schema.field(name).type) for name in MIXED[0]}
    assert kinds == {
        "id": "int64",
        "text": "string",
        "share": "double",
        "paid": "bool",
        "tags": "string",
        "odd": "string",
        "none": "string",
    }


def test_columns_of_a_parquet_file_pass_through_as_they_are(folder: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": [f"fog {i}" for i in range(20)],
            "when": pa.array(range(20), pa.timestamp("ns")),
            "vector": pa.array([[i, 2 * i] for i in range(20)], pa.list_(pa.float32(), 2)),
            "kind": pa.array(["x", None] * 10).dictionary_encode(),
            "part": pa.array([float("nan")] * 20),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=9)
    source = tmp_path / "in.parquet"
    job(folder, source, tmp_path / "out.parquet").run(Watch())
    kept = pq.read_table(tmp_path / "out.parquet").select(table.column_names)
    assert kept.drop_columns("part").equals(table.drop_columns("part"))
    job(folder, source, tmp_path / "out.jsonl").run(Watch())
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[3])
    assert row["vector"] == [3.0, 6.0]
    assert row["part"] is None
    assert row["when"] == "1970-01-01 00:00:00.000000003"
    job(folder, source, tmp_path / "out.csv").run(Watch())
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 21


def test_chosen_columns_and_none(folder: Path, tmp_path: Path) -> None:
    for ending in (".csv", ".jsonl", ".parquet"):
        source = texts_file(tmp_path, ending)
        for keep, names in ((("id",), ["id"]), ((), [])):
            job(folder, source, tmp_path / "out.parquet", Answers(("mood",), keep=keep)).run(Watch())
            answers = ["task", "label", "score", "p_bad", "p_good"]
            assert pq.read_table(tmp_path / "out.parquet").column_names == names + answers
        with pytest.raises(UserError, match="there is no column 'when'; the columns are 'id', 'text'"):
            job(folder, source, tmp_path / "out.parquet", Answers(("mood",), keep=("when",))).run(Watch())


def test_an_input_column_gives_way_to_an_answer_of_the_same_name(folder: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.csv", [{"text": "fog", "label": "mist", "input_label": "x", "score": "9"}], ",")
    watch = Watch()
    job(folder, source, tmp_path / "out.jsonl").run(watch)
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert row["label"] in ("bad", "good")
    assert (row["input_input_label"], row["input_label"], row["input_score"]) == ("mist", "x", "9")
    assert isinstance(row["score"], float)
    assert watch.notes == [
        f"{source}: its column 'label' is called 'input_input_label' in the output",
        f"{source}: its column 'score' is called 'input_score' in the output",
    ]


def with_empty_texts(tmp_path: Path) -> Path:
    rows = [{"id": "1", "text": "fog"}, {"id": "2", "text": "  "}, {"id": "3", "text": "mist"}, {"id": "4", "text": ""}]
    return write_rows(tmp_path / "in.csv", rows, delimiter=",")


def test_empty_texts_are_told_by_line_before_anything_is_done(folder: Path, tmp_path: Path) -> None:
    source = with_empty_texts(tmp_path)
    for work, output in ((Answers(("mood",)), "out.csv"), (Vectors(None), "out.npy")):
        with pytest.raises(
            UserError, match=r"in.csv:3: column 'text' is empty, .*\n.*in.csv:5: column 'text' is empty"
        ):
            job(folder, source, tmp_path / output, work).run(Watch())
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_empty_texts_that_are_skipped_or_kept_stay_in_their_place(folder: Path, tmp_path: Path) -> None:
    source = with_empty_texts(tmp_path)
    found = {}
    for rule in ("skip", "keep"):
        output = tmp_path / f"{rule}.jsonl"
        assert job(folder, source, output, Answers(("mood", "near")[:1], on_empty=rule)).run(Watch()) == 4  # type: ignore[arg-type]
        found[rule] = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in found["skip"]] == ["1", "2", "3", "4"]
    assert [row["label"] is None for row in found["skip"]] == [False, True, False, True]
    assert [row["score"] is None for row in found["skip"]] == [False, True, False, True]
    assert all(row["label"] for row in found["keep"])
    job(folder, source, tmp_path / "v.npy", Vectors(None, on_empty="skip")).run(Watch())
    assert np.isnan(np.load(tmp_path / "v.npy")).all(axis=1).tolist() == [False, True, False, True]
