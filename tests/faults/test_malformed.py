"""Bad input of every kind: exit code 2, one message that names the place, no traceback, nothing left behind."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from tests.forks import Forks
from tests.tiny import recipe_content, write_recipe

GOOD = "text\tlabel\na warm film\tgood\na dull film\tbad\n"
Arrange = Callable[[Path], list[Any]]
"""makes a folder (with a copy of the tiny body and data) bad and says which command to run"""


def data(content: str | bytes, name: str = "sentiment-train.tsv", **columns: Any) -> Arrange:
    """A train file with this content."""

    def arrange(folder: Path) -> list[Any]:
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / "data" / name).write_bytes(raw)
        recipe = recipe_content(folder)
        recipe["tasks"] = {"sentiment": recipe["tasks"]["sentiment"]}
        recipe["tasks"]["sentiment"]["data"] |= {"train": str(folder / "data" / name), **columns}
        return ["train", write_recipe(folder, recipe), "-o", folder / "run"]

    return arrange


def scores(content: str, **changes: Any) -> Arrange:
    """A train file of a regression."""

    def arrange(folder: Path) -> list[Any]:
        (folder / "data" / "similarity-train.tsv").write_text(content)
        recipe = recipe_content(folder)
        recipe["tasks"] = {"similarity": recipe["tasks"]["similarity"] | changes}
        return ["train", write_recipe(folder, recipe), "-o", folder / "run"]

    return arrange


def flags(content: str, **changes: Any) -> Arrange:
    """A train file of a multilabel task with a column for each label."""

    def arrange(folder: Path) -> list[Any]:
        (folder / "data" / "sentiment-train.tsv").write_text(content)
        recipe = recipe_content(folder)
        task = recipe["tasks"]["sentiment"] | {"kind": "multilabel"} | changes
        task["data"] = task["data"] | {"label": ["toxic", "spam"]}
        recipe["tasks"] = {"sentiment": task}
        return ["train", write_recipe(folder, recipe), "-o", folder / "run"]

    return arrange


def recipe(change: Callable[[dict[str, Any]], Any], *arguments: Any) -> Arrange:
    def arrange(folder: Path) -> list[Any]:
        content = recipe_content(folder)
        change(content)
        return ["train", write_recipe(folder, content), "-o", folder / "run", *arguments]

    return arrange


def recipe_text(content: str | bytes) -> Arrange:
    def arrange(folder: Path) -> list[Any]:
        (folder / "recipe.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
        return ["train", folder / "recipe.toml", "-o", folder / "run"]

    return arrange


def body(change: Callable[[Path], Any]) -> Arrange:
    def arrange(folder: Path) -> list[Any]:
        change(folder / "body")
        return ["train", write_recipe(folder, recipe_content(folder)), "-o", folder / "run"]

    return arrange


def config(**changes: Any) -> Arrange:
    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(content | changes))

    return body(change)


def tensors(change: Callable[[dict[str, Any]], Any]) -> Arrange:
    def apply(folder: Path) -> None:
        state = load_file(folder / "model.safetensors")
        change(state)
        save_file(state, folder / "model.safetensors")

    return body(apply)


def task(**changes: Any) -> Arrange:
    return recipe(lambda content: content["tasks"]["sentiment"].update(changes))


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


EMPTY_ROWS = GOOD + "\tgood\n" * 3
CASES: dict[str, tuple[Arrange, str]] = {
    # data
    "no such file": (
        recipe(lambda c: c["tasks"]["sentiment"]["data"].update(train="none.tsv")),
        "none.tsv: there is no such file",
    ),
    "wrong text column": (
        data("review\tlabel\nx\tgood\ny\tbad\n"),
        "train.tsv:1: there is no column 'text'; the columns are 'review', 'label'",
    ),
    "wrong label column": (data("text\tstars\nx\tgood\ny\tbad\n"), "train.tsv:1: there is no column 'label'"),
    "column twice": (data("text\ttext\tlabel\nx\ty\tgood\n"), "train.tsv:1: column 'text' stands twice"),
    "too many fields": (data(GOOD + "a\tb\tgood\n"), "train.tsv:4: has 3 fields, the header has 2"),
    "too few fields": (data(GOOD + "alone\n"), "train.tsv:4: has 1 fields, the header has 2"),
    "a quote that never closes": (
        data(GOOD + '"open\tgood\nnext\tbad\n', quoting="csv"),
        "train.tsv:4: a quote opens here and is not closed properly",
    ),
    "a quote that closes inside of a field": (
        data(GOOD + '"open\tgood\nnext" one\tbad\n', quoting="csv"),
        "train.tsv:4: a quote opens here",
    ),
    "an open quote on the last line": (
        data(GOOD + '"open\tgood', quoting="csv"),
        "train.tsv:4: a quote opens here and is not closed properly",
    ),
    "a quoted delimiter without quoting": (
        data(GOOD + '"a\tb"\tgood\n', quoting="none"),
        "train.tsv:4: has 3 fields, the header has 2",
    ),
    "an unknown quoting": (data(GOOD, quoting="excel"), "tasks.sentiment.data.quoting: found 'excel'"),
    "names beside a header": (
        data(GOOD, columns=["text", "label"]),
        "tasks.sentiment.data: `columns` names the columns of a file without a header; say `header = false` too",
    ),
    "too few names": (
        data(GOOD, header=False, columns=["text"]),
        "train.tsv:1: has 2 fields, but `columns` has 1 names",
    ),
    "a name twice": (data(GOOD, header=False, columns=["text", "text"]), "expected every name once"),
    "a row that is taken for a header": (
        data("the quiet harbour woke before dawn\tgood\na dull film\tbad\n"),
        "'good'; if the first line is a row, say `header = false`",
    ),
    "two equal cells for a header": (
        data("good\tgood\na dull film\tbad\n"),
        "train.tsv:1: column 'good' stands twice in the header; if the file has no header, say `header = false`",
    ),
    "an unknown encoding": (
        data(GOOD, encoding="latin-9000"),
        "tasks.sentiment.data.encoding: 'latin-9000' is not a text encoding",
    ),
    "an encoding of something else": (data(GOOD, encoding="hex"), "'hex' is not a text encoding"),
    "a byte of no character": (
        data(b"text\tlabel\ncaf\x81\tgood\nx\tbad\n", encoding="cp1252"),
        "train.tsv:2: column 'text' holds the byte 0x81, which is not cp1252",
    ),
    "several label columns for classes": (
        data(GOOD, label=["text", "label"]),
        '`data.label` names several columns: that needs kind = "multilabel", not "classification"',
    ),
    "one label column in a list": (
        data(GOOD, label=["label"]),
        "expected the names of at least two columns, each once",
    ),
    "a label column that is no name": (
        data(GOOD, label=1.5),
        "tasks.sentiment.data.label: found 1.5, expected the name of a column",
    ),
    "a flag that is neither": (
        flags("text\ttoxic\tspam\nx\t1\t0\ny\t0\tmaybe\n"),
        "train.tsv:3: column 'spam' has the label 'maybe', expected 0 or 1",
    ),
    "a flag that is missing": (
        flags("text\ttoxic\tspam\nx\t1\t0\ny\t\t1\n"),
        "train.tsv:3: column 'toxic' has no label, expected 0 or 1",
    ),
    "a flag column that is missing": (flags("text\ttoxic\nx\t1\n"), "there is no column 'spam'"),
    "other labels than columns": (
        flags("text\ttoxic\tspam\nx\t1\t0\n", labels=["toxic", "rude"]),
        "`labels` declares toxic, rude, but the label columns are toxic, spam",
    ),
    "empty text": (data(EMPTY_ROWS), "train.tsv:4: column 'text' is empty"),
    "blank text": (data(GOOD + "   \tgood\n"), "train.tsv:4: column 'text' is empty"),
    "missing label": (data(GOOD + "fine\t\n", on_blank="error"), "train.tsv:4: column 'label' has no label"),
    "several kinds at once": (
        data(GOOD + "\tgood\nfine\t\na\tb\tc\n", on_blank="error"),
        "train.tsv:5: column 'label' has no label",
    ),
    "a column without any label": (data("text\tlabel\nx\t\ny\t\n"), "has 0 distinct labels"),
    "an unknown rule for blank labels": (
        data(GOOD, on_blank="keep"),
        "tasks.sentiment.data.on_blank: found 'keep', input should be 'skip' or 'error'",
    ),
    "one class only": (
        data("text\tlabel\nx\tgood\ny\tgood\n"),
        "has 1 distinct labels (good); a classification task needs at least two",
    ),
    "no rows": (data("text\tlabel\n"), "train.tsv: has a header but no rows"),
    "nothing at all": (data(""), "train.tsv: is empty"),
    "only blank lines": (data("\n\n\n"), "train.tsv: is empty"),
    "not UTF-8": (
        data(b"text\tlabel\ncaf\xe9\tgood\nx\tbad\n"),
        "train.tsv:2: column 'text' holds the byte 0xe9, which is not UTF-8",
    ),
    "UTF-16": (data(GOOD.encode("utf-16")), "train.tsv:1: the header is not UTF-8"),
    "NUL bytes": (data(GOOD + "a\0b\tgood\n"), "train.tsv:4: column 'text' holds a NUL byte"),
    "NUL in the header": (data("te\0xt\tlabel\nx\tgood\n"), "train.tsv:1: the header is not UTF-8"),
    "a 10 MB line": (
        data(GOOD + "x" * 10_000_000 + "\tgood\n"),
        "train.tsv:4: column 'text' is 10,000,000 characters long",
    ),
    "a zip file": (data(b"PK\x03\x04\x14\x00\x00\x00\xff\xfe" * 50), "train.tsv:1: the header is not UTF-8"),
    "not gzip": (data(GOOD, "train.csv.gz"), "train.csv.gz: cannot be read as csv"),
    "half a gzip": (
        data(gzip.compress(GOOD.encode() * 50)[:60], "train.tsv.gz"),
        "train.tsv.gz: cannot be read as tsv",
    ),
    "not parquet": (data(GOOD, "train.parquet"), "train.parquet: cannot be read as parquet"),
    "not JSON": (data('{"text": "a", "label": "good"}\n{"text": \n', "train.jsonl"), "train.jsonl:2: is not JSON"),
    "a JSON list": (
        data('{"text": "a", "label": "good"}\n["text"]\n', "train.jsonl"),
        "train.jsonl:2: is a JSON list, expected an object",
    ),
    "deep JSON": (
        data('{"text": "a", "label": "good"}\n' + "[" * 100_000 + "\n", "train.jsonl"),
        "train.jsonl:2: is not JSON",
    ),
    "half a character": (
        data('{"text": "a\\ud800", "label": "good"}\n{"text": "b", "label": "bad"}\n', "train.jsonl"),
        "train.jsonl:1: column 'text' holds half a character (U+D800)",
    ),
    "another key": (
        data('{"text": "a", "label": "good"}\n{"text": "b", "lable": "bad"}\n', "train.jsonl"),
        "train.jsonl:2: has the key 'lable'",
    ),
    "not a number": (
        scores("a\tb\tsim\nx\ty\t1\nx\ty\thigh\nx\tz\t2\n"),
        "train.tsv:3: column 'sim' has the label 'high', expected a number",
    ),
    "NaN": (scores("a\tb\tsim\nx\ty\t1\nx\ty\tnan\nx\tz\t2\n"), "train.tsv:3: column 'sim' has the label 'nan'"),
    "infinite": (scores("a\tb\tsim\nx\ty\t1\nx\ty\tinf\nx\tz\t2\n"), "train.tsv:3: column 'sim' has the label 'inf'"),
    "out of range": (
        scores("a\tb\tsim\nx\ty\t1\nx\ty\t7\n", range=[0, 5]),
        "train.tsv:3: column 'sim' has the label '7', expected a number from 0 to 5",
    ),
    "all numbers equal": (scores("a\tb\tsim\nx\ty\t1\nx\tz\t1\n"), "has 1 distinct numbers; a regression needs"),
    "a label that dev has and train has not": (
        recipe(lambda c: Path(c["tasks"]["sentiment"]["data"]["dev"]).write_text(GOOD + "x\tgreat\n")),
        "sentiment-dev.tsv:4: column 'label' has the label 'great', expected one of bad, good",
    ),
    "an unknown declared label": (task(labels=["fine", "awful"]), "expected one of fine, awful"),
    "a folder for a file": (
        recipe(lambda c: c["tasks"]["sentiment"]["data"].update(train=".")),
        "there is no such file",
    ),
    # recipes
    "not TOML": (recipe_text("epochs = = 3"), "recipe.toml: is not TOML"),
    "a recipe that is not UTF-8": (recipe_text(b'name = "caf\xe9"'), "recipe.toml: cannot be read as a recipe"),
    "an empty recipe": (recipe_text(""), "recipe.toml: name: is missing"),
    "no such recipe": (
        lambda folder: ["train", folder / "no.toml", "-o", folder / "run"],
        "no.toml: there is no such file",
    ),
    "no such name": (lambda folder: ["train", "mulitask", "-o", folder / "run"], "did you mean 'multitask'?"),
    "unknown key": (
        recipe(lambda c: c.update(epoch=3)),
        "recipe.toml: epoch: there is no such key; did you mean 'epochs'?",
    ),
    "unknown key of a task": (
        task(bach_size=3),
        "tasks.sentiment.bach_size: there is no such key; did you mean 'batch_size'?",
    ),
    "wrong type": (recipe(lambda c: c.update(epochs="many")), "epochs: found 'many'"),
    "a number out of bounds": (recipe(lambda c: c["optimizer"].update(lr=-1)), "optimizer.lr: found -1"),
    "another variant's option": (
        task(loss={"name": "cross-entropy", "alpha": 2}),
        "tasks.sentiment.loss.cross-entropy.alpha: there is no such key",
    ),
    "unknown variant": (recipe(lambda c: c.update(surgery="pcgrd")), "did you mean 'pcgrad'?"),
    "unknown preset": (task(data="sst6"), "'sst6' is not a preset"),
    "a preset without a folder": (task(data="sst5"), "say with --data-dir which folder holds"),
    "a pair reading of one text": (task(reading="cross"), "tasks.sentiment.data.text2: is missing"),
    "a head for pairs on one text": (task(head="cosine"), "cosine"),
    "a loss for numbers on classes": (task(loss="mse"), "tasks.sentiment.loss"),
    "surgery of one task": (
        recipe(lambda c: c.update(surgery="pcgrad", schedule="sequential")),
        "surgery: 'pcgrad' combines the gradients of several tasks, but each step of sequential has only one task",
    ),
    "surgery of a frozen body": (
        recipe(lambda c: c.update(surgery="pcgrad", trainable="frozen")),
        "the body is frozen",
    ),
    "phases that do not add up": (recipe(lambda c: c.update(phases=[{"epochs": 1}])), "the sum must be `epochs`"),
    "a layer that is not there": (
        recipe(lambda c: c.update(trainable={"name": "layers", "layers": [7]})),
        "trainable.layers: found 7, but the body has layers 0 to 1",
    ),
    "a task that is not there": (
        recipe(lambda c: c.update(schedule={"name": "sequential", "tasks": ["mood"]})),
        "schedule.tasks: found 'mood', expected some of",
    ),
    "weights for other tasks": (
        recipe(lambda c: c.update(weighting={"name": "fixed", "weights": {"mood": 1}})),
        "mood",
    ),
    "too long for the body": (
        recipe(lambda c: c.update(max_length=500)),
        "max_length: found 500, but the body has 64 positions",
    ),
    "fp16 without a GPU": (recipe(lambda c: c["optimizer"].update(precision="fp16")), "optimizer.precision"),
    "an odd budget": (recipe(dict.copy, "--budget", "epochs=3"), "--budget"),
    "a budget of nothing": (recipe(dict.copy, "--budget", "steps=0"), "--budget"),
    "an odd setting": (recipe(dict.copy, "--set", "lr"), "--set lr: expected key=value"),
    "a tracker that was not allowed": (
        recipe(lambda c: c.update(trackers=[{"name": "mlflow", "uri": "http://elsewhere.example"}])),
        "trackers: the recipe sends the log to http://elsewhere.example, which you have not allowed",
    ),
    "a tracker's database outside of the run": (
        recipe(lambda c: c.update(trackers=[{"name": "mlflow", "uri": "sqlite:////tmp/x.db"}])),
        "expected sqlite:///FILE with a FILE inside the run folder",
    ),
    "an odd device": (recipe(dict.copy, "--device", "tpu"), "--device tpu"),
    # bodies
    "no config": (body(lambda f: (f / "config.json").unlink()), "config.json: there is no such file"),
    "a config that is not JSON": (body(lambda f: cut(f / "config.json", 40)), "config.json: is not JSON"),
    "another architecture": (
        config(model_type="gpt2", architectures=["GPT2Model"]),
        "config.json: model_type is 'gpt2' (GPT2Model); this architecture is not supported",
    ),
    "another architecture with a tokenizer of its own": (
        body(
            lambda f: (
                (f / "config.json").write_text('{"model_type": "xlnet"}'),
                (f / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordLevel", "vocab": {"<s>": 0}}})),
            )
        ),
        "config.json: model_type is 'xlnet'; this architecture is not supported",
    ),
    "a decoder": (config(is_decoder=True), "weft trains encoders only"),
    "an odd width": (config(hidden_size=17), "config.json: hidden_size 17 is not a multiple of 2 heads"),
    "a width that is not the weights'": (config(hidden_size=32), "but config.json asks for"),
    "a size that fills the memory": (config(vocab_size=9_000_000, hidden_size=9_000_000), "but config.json asks for"),
    "a size beyond reason": (config(vocab_size=10**15), "config.json: vocab_size is 1000000000000000"),
    "more layers than weights": (config(num_hidden_layers=900), "is missing; expected a whole BERT checkpoint"),
    "fewer layers than weights": (config(num_hidden_layers=1), "do not belong to a 1-layer BERT"),
    "a dropout of five": (config(hidden_dropout_prob=5.0), "leaves nothing"),
    "no weights": (
        body(lambda f: (f / "model.safetensors").unlink()),
        "has neither model.safetensors nor pytorch_model.bin",
    ),
    "half the weights": (
        body(lambda f: cut(f / "model.safetensors", 3000)),
        "model.safetensors: is not a readable safetensors file",
    ),
    "half a header": (
        body(lambda f: cut(f / "model.safetensors", 100)),
        "model.safetensors: is not a readable safetensors file",
    ),
    "a tensor too few": (tensors(lambda s: s.pop("embeddings.LayerNorm.bias")), "embeddings.LayerNorm.bias is missing"),
    "a tensor too many": (
        tensors(lambda s: s.update(extra=s["embeddings.LayerNorm.bias"].clone())),
        "the first is extra",
    ),
    "no tokenizer": (body(lambda f: (f / "tokenizer.json").unlink()), "has neither tokenizer.json nor vocab.txt"),
    "half a tokenizer": (body(lambda f: cut(f / "tokenizer.json", 200)), "its tokenizer cannot be read"),
    "a pickle": (
        body(
            lambda f: (
                (f / "model.safetensors").unlink(),
                (f / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR."),
            )
        ),
        "pytorch_model.bin: cannot be read as plain tensors",
    ),
    "no such body": (recipe(lambda c: c.update(body="./nowhere")), "there is no folder"),
    # models
    "not a model": (lambda folder: ["predict", folder / "body", "sentiment", "x"], "is not a weft model"),
    "no such model": (lambda folder: ["evaluate", folder / "none"], "is not a weft model"),
}


@pytest.fixture
def folder(tiny: Path, tmp_path: Path) -> Path:
    for name in ("body", "data"):
        shutil.copytree(tiny / name, tmp_path / name)
    return tmp_path


def test_there_are_enough() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str, folder: Path, forks: Forks) -> None:
    arrange, message = CASES[name]
    arguments = arrange(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = forks.weft(*arguments)
    assert done.code == 2, f"exit {done.code}: {done.stdout}{done.stderr}"
    assert message in done.stderr
    assert done.stderr.startswith("weft: ")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_check_says_the_same_as_train(folder: Path, forks: Forks) -> None:
    arguments = data(GOOD + "\tgood\nfine\t\na\tb\tc\n")(folder)
    trained, checked = forks.weft(*arguments), forks.weft("check", arguments[1])
    assert (checked.code, checked.stderr) == (2, trained.stderr)
    assert [line.split(":")[1] for line in trained.stderr.removeprefix("weft: ").splitlines()] == ["4", "5", "6"]


def test_the_first_twenty_and_then_counts(folder: Path, forks: Forks) -> None:
    done = forks.weft(*data(GOOD + "\tgood\n" * 15 + "fine\t\n" * 10)(folder))
    lines = done.stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith("and 5 more problems (in all: 15 x empty text, 10 x bad label)")


def test_bad_rows_can_be_skipped_and_are_counted(folder: Path, forks: Forks) -> None:
    bad = b"\tgood\nfine\t\na\tb\tc\ncaf\xe9\tgood\nnul\0\tbad\n"
    done = forks.weft(*data(GOOD.encode() + b"one\tgood\ntwo\tbad\n" + bad, on_bad_rows="skip")(folder))
    assert done.code == 0, done.stderr
    for count in ("1 rows skipped (empty text)", "1 rows skipped (not UTF-8)", "1 rows skipped (NUL byte)"):
        assert count in done.stdout
    assert "1 rows skipped (wrong number of fields)" in done.stdout
    assert "1 rows skipped (no usable label)" in done.stdout
