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

from tests.exported import write_model
from tests.faults.test_hostile_models import put, reseal
from tests.tiny import write_body

READ = """
from weft.data.files import read_rows
from weft.data.problems import Problems
for row in read_rows(path, Problems(path)): pass
"""
TOKENIZE = """
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import tokenize_file
tokenize_file(path, ["text"], Tokenizer.load(Path(sys.argv[2])))
"""
LOAD = "import weft; weft.load(path)"
BODY = "from weft.nn.weights import load_body; load_body(path)"
FRAME = """
import resource, sys
from pathlib import Path
import pyarrow, torch, weft, weft.model
from weft.errors import UserError
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    exec(sys.argv[3])
    print("accepted")
except UserError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
LONG = "x" * 750_000


def cost(code: str, path: Path, body: Path) -> tuple[str, int]:
    """What is said, and bytes of memory that it took, in a process that may not take everything."""
    done = subprocess.run(
        [sys.executable, "-c", FRAME, str(path), str(body), code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *said, kilobytes = done.stdout.strip().splitlines()
    return "\n".join(said), int(kilobytes) * 1024


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size


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
        gzipped(b"text\tlabel\n", b"a\tb\n" * 250_000, 400),
        "expands to more than 100",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_expands_is_rejected(name: str, tmp_path: Path, tiny: Path) -> None:
    ending, write, message = FILES[name]
    path = tmp_path / ending
    write(path)
    said, taken = cost(READ, path, tiny / "body")
    assert message in said
    assert str(path) in said
    assert taken < 2 * size(path) + 1e9


def test_long_texts_below_the_bounds_are_read(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 texts of 100,000 characters cost less than 1 GB besides twice the file, tokens and all."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.parquet"
    texts = ["the warm film sees a dog " * 4000] * 1500
    pq.write_table(pa.table({"text": texts, "label": ["a", "b"] * 750}), path)
    said, taken = cost(TOKENIZE, path, tiny / "body")
    assert said == "accepted"
    assert taken < 2 * size(path) + 1e9


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


def test_an_old_archive_is_read(archive: Path, tiny: Path) -> None:
    assert cost(BODY, archive, tiny / "body")[0] == "accepted"


def test_tensors_without_strides_are_rejected(archive: Path, tiny: Path) -> None:
    state = torch.load(archive / "pytorch_model.bin", weights_only=True)
    state["embeddings.word_embeddings.weight"] = torch.zeros(1, 1).expand(9_000_000, 16)
    torch.save(state, archive / "pytorch_model.bin")
    change_config(archive, vocab_size=9_000_000)
    said, taken = cost(BODY, archive, tiny / "body")
    assert "embeddings.word_embeddings.weight repeats its numbers" in said
    assert taken < 2 * size(archive) + 1e9


def test_layers_that_share_their_numbers_are_rejected(archive: Path, tiny: Path) -> None:
    state = torch.load(archive / "pytorch_model.bin", weights_only=True)
    first = {name: tensor for name, tensor in state.items() if name.startswith("encoder.layer.0.")}
    for layer in range(2, 900):
        state |= {name.replace("layer.0", f"layer.{layer}"): tensor for name, tensor in first.items()}
    torch.save(state, archive / "pytorch_model.bin")
    change_config(archive, num_hidden_layers=900)
    assert "hold more numbers than the file" in cost(BODY, archive, tiny / "body")[0]


def test_a_compressed_archive_is_rejected(archive: Path, tiny: Path) -> None:
    file = archive / "pytorch_model.bin"
    shutil.move(file, archive / "plain")
    with zipfile.ZipFile(archive / "plain") as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    assert "is compressed" in cost(BODY, archive, tiny / "body")[0]


def test_a_head_of_two_million_is_rejected(tiny: Path, tmp_path: Path) -> None:
    model = write_model(tiny, tmp_path, {"mood": {"like": "sentiment"}})
    reseal(model, put("recipe", "tasks", "mood", "head", value={"name": "hidden", "units": 20_000_000}))
    said, taken = cost(LOAD, model, tiny / "body")
    assert "tensor tasks.mood.head." in said
    assert taken < 2 * size(model) + 1e9


def test_json_beyond_reason_is_rejected(tiny: Path, tmp_path: Path) -> None:
    model = write_model(tiny, tmp_path, {"mood": {"like": "sentiment"}})
    (model / "weft.json").write_text('{"a": [' + "[]," * 30_000_000 + "0]}")
    said, taken = cost(LOAD, model, tiny / "body")
    assert "weft.json: has 90" in said
    assert taken < 2 * size(model) + 1e9
