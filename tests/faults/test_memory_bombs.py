"""Small files that stand for gigabytes: rejected with a message, at the cost of twice the file and 1 GB at most."""

import gzip
import json
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import weft
from tests.exported import write_model
from tests.faults.test_hostile_models import put, reseal
from tests.tiny import write_body
from weft.bodies.weights import load_body
from weft.data.files import read_rows
from weft.data.problems import Problems
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import tokenize_file
from weft.foundation.errors import UserError

PEAK = """
import resource, sys
from pathlib import Path
import pyarrow, torch
from tests.faults.test_memory_bombs import BY_KIND
from weft.foundation.errors import UserError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for kind, path in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        BY_KIND[kind](Path(path))
    except UserError as error:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def read(path: Path) -> None:
    for _ in read_rows(path, Problems(path)):
        pass


def tokenize(path: Path) -> None:
    tokenize_file(path, ["text"], Tokenizer.load(path.parent / "body"))


BY_KIND: dict[str, Callable[[Path], object]] = {"file": read, "text": tokenize, "body": load_body, "model": weft.load}


def peak(*asked: tuple[str, Path]) -> int:
    """Bytes of memory that it takes to load all of these, in a process that may not take everything."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *(str(part) for pair in asked for part in pair)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout) * 1024


LONG = "x" * 750_000


def repeated(count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([LONG]))


def dictionary(path: Path) -> None:
    pq.write_table(pa.table({"text": repeated(8192), "label": ["a", "b"] * 4096}), path, compression="zstd")


def list_of_nothing(path: Path) -> None:
    entries = pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), pa.nulls(30_000_000, pa.string()))
    pq.write_table(pa.table({"text": ["a"], "label": entries}), path)


def list_of_long_texts(path: Path) -> None:
    entries = pa.ListArray.from_arrays(pa.array([0, 8192], pa.int32()), repeated(8192))
    pq.write_table(pa.table({"text": ["a"], "label": entries}), path, compression="zstd")


def one_long_page(path: Path) -> None:
    table = pa.table({"text": ["y" * 300_000_000], "label": ["a"]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def delta(path: Path) -> None:
    table = pa.table({"text": [LONG] * 500, "label": ["a"] * 500})
    encodings = {"text": "DELTA_BYTE_ARRAY", "label": "PLAIN"}
    pq.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=encodings)


def gzipped(start: bytes, block: bytes, times: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(start)
            for _ in range(times):
                file.write(block)

    return write


FILES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a repeated text": ("a.parquet", dictionary, "hold more text than fits into memory together"),
    "a list of thirty million": ("a.parquet", list_of_nothing, "30,000,000 list entries in one row group"),
    "a list of a repeated text": ("a.parquet", list_of_long_texts, "hold more text than fits into memory together"),
    "one long page": ("a.parquet", one_long_page, "expands to 300,000"),
    "texts that share a start": ("a.parquet", delta, "hold more text than fits into memory together"),
    "a line without an end": ("a.tsv.gz", gzipped(b"text\tlabel\n", b"z" * 1_000_000, 100), "the line is longer than"),
    "a header without an end": ("a.csv.gz", gzipped(b"", b"z" * 1_000_000, 100), "the line is longer than"),
    "a JSON line without an end": (
        "a.jsonl.gz",
        gzipped(b'{"text": "', b"z" * 1_000_000, 100),
        "the line is longer than",
    ),
    "rows without an end": (
        "a.tsv.gz",
        gzipped(b"text\tlabel\n", (b"a" * 4000 + b"\tb\n") * 250, 300),
        "expands to more than 100",
    ),
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    paths = {}
    for number, (name, (ending, write, _)) in enumerate(FILES.items()):
        paths[name] = folder / f"{number}{ending}"
        write(paths[name])
    return paths


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_expands_is_rejected(name: str, bombs: dict[str, Path]) -> None:
    with pytest.raises(UserError) as error:
        read(bombs[name])
    assert FILES[name][2] in str(error.value)
    assert str(bombs[name]) in str(error.value)


def test_reading_costs_at_most_twice_the_file_and_a_gigabyte(
    bombs: dict[str, Path], tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bombs, and 300 texts of 100,000 characters that are within the bounds and are tokenized."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    shutil.copytree(tiny / "body", tmp_path / "body")
    path = tmp_path / "a.parquet"
    texts = ["the warm film sees a dog " * 4000] * 300
    pq.write_table(pa.table({"text": texts, "label": ["a", "b"] * 150}), path)
    taken = peak(("text", path), *(("file", bomb) for bomb in bombs.values()))
    assert list((tmp_path / "cache").glob("*.arrow")), "the long texts were tokenized"
    assert taken < 1e9


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A body in the old format."""
    from safetensors.torch import load_file

    folder = write_body(tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def change_config(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | changes))


def test_an_old_archive_is_read(archive: Path) -> None:
    assert load_body(archive).shape.layers == 2


def shared_row(folder: Path) -> None:
    """Nine million tokens that are one."""
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    state["embeddings.word_embeddings.weight"] = torch.zeros(1, 1).expand(9_000_000, 16)
    torch.save(state, folder / "pytorch_model.bin")
    change_config(folder, vocab_size=9_000_000)


def shared_layers(folder: Path) -> None:
    """Nine hundred layers that are one."""
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    first = {name: tensor for name, tensor in state.items() if name.startswith("encoder.layer.0.")}
    for layer in range(2, 900):
        state |= {name.replace("layer.0", f"layer.{layer}"): tensor for name, tensor in first.items()}
    torch.save(state, folder / "pytorch_model.bin")
    change_config(folder, num_hidden_layers=900)


def compressed(folder: Path) -> None:
    file = folder / "pytorch_model.bin"
    shutil.move(file, folder / "plain")
    with zipfile.ZipFile(folder / "plain") as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shared_row, "embeddings.word_embeddings.weight repeats its numbers"),
        (shared_layers, "hold more numbers than the file"),
        (compressed, "is compressed"),
    ],
)
def test_an_archive_that_holds_less_than_it_says_is_rejected(
    change: Callable[[Path], None], message: str, archive: Path
) -> None:
    change(archive)
    with pytest.raises(UserError, match=message):
        load_body(archive)


def test_loading_costs_at_most_twice_the_files_and_a_gigabyte(archive: Path, tiny: Path, tmp_path: Path) -> None:
    """A stride of zero, a head of twenty million units, and settings of 90 MB."""
    shared_row(archive)
    model = write_model(tiny, tmp_path, {"mood": {"like": "sentiment"}})
    large = Path(shutil.copytree(model, tmp_path / "large"))
    reseal(model, put("recipe", "tasks", "mood", "head", value={"name": "hidden", "units": 20_000_000}))
    (large / "weft.json").write_text('{"a": [' + "[]," * 30_000_000 + "0]}")
    with pytest.raises(UserError, match=r"weft\.json: has 90,000,010 bytes"):
        weft.load(large)
    assert peak(("body", archive), ("model", model), ("model", large)) < 1e9
