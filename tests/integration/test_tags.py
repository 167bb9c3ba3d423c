"""Intent and slots of one file: trained, evaluated, predicted, exported and served."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import weft
from tests.tagged import recipe, rows
from tests.tiny import write_body
from weft.export import export
from weft.foundation.errors import UserError
from weft.inference.joint import Ask
from weft.inference.model import Model, load
from weft.inference.words import most_probable
from weft.recipes.init.writer import propose
from weft.runs.model_folder import save_settings
from weft.tasks.store import save_weights

TEXT = "a film sees cat, heron no lovely!"


def spans(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The same labels as ranges of characters of the joined text."""
    found: list[dict[str, Any]] = []
    at = 0
    for word, tag in zip(row["tokens"], row["slots"], strict=True):
        if tag.startswith("B-"):
            found.append({"start": at, "end": at + len(word), "label": tag[2:]})
        elif tag.startswith("I-"):
            found[-1]["end"] = at + len(word)
        at += len(word) + 1
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in three forms, a body and a trained run."""
    tmp = tmp_path_factory.mktemp("tags")
    for split, own in (("train", rows(64, 0)), ("dev", rows(16, 1))):
        lines = {
            "jsonl": [json.dumps(row) for row in own],
            "spans.jsonl": [json.dumps({"text": " ".join(row["tokens"]), "spans": spans(row)}) for row in own],
            "conll": ["\n".join(map("\t".join, zip(r["tokens"], r["slots"], strict=True))) + "\n" for r in own],
        }
        for ending, texts in lines.items():
            (tmp / f"{split}.{ending}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    write_body(tmp / "body")
    weft.train(recipe(tmp, "jsonl", text="tokens", label="slots"), out=tmp / "run")
    return tmp


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load(folder / "run")


def test_slots_are_learnt(folder: Path, model: Model) -> None:
    scores = model.evaluate().scores["slots"]
    assert scores["entity-f1"] > 0.9
    assert scores["token-accuracy"] > 0.9
    assert scores["n"] == 16
    result = json.loads((folder / "run/result.json").read_text(encoding="utf-8"))
    assert result["dev"]["slots"]["entity-f1"] == pytest.approx(scores["entity-f1"])


def test_spans_point_into_the_users_text(model: Model) -> None:
    answer = model.predict("slots", TEXT)
    assert isinstance(answer.label, list)
    found = {TEXT[span["start"] : span["end"]] for span in answer.label if isinstance(span, dict)}
    assert {"lovely"} <= found
    assert all(0 < span["score"] <= 1 for span in answer.label if isinstance(span, dict))
    assert answer.as_dict().keys() == {"task", "label", "score"}
    both = model.predict_all(TEXT)
    assert both["slots"] == answer


def test_both_tasks_read_the_same_sequences(model: Model) -> None:
    """So they share a pass, in training and in answers."""
    (slots,), (intent,) = (model.rows(task, [TEXT])[0] for task in ("slots", "intent"))
    assert slots.ids.tolist() == intent.ids.tolist()
    assert slots.words is not None
    assert intent.words is None


@pytest.mark.parametrize(("ending", "text", "label"), [("spans.jsonl", "text", "spans"), ("conll", "tokens", "tags")])
def test_other_forms_of_the_same_labels_give_the_same_targets(folder: Path, ending: str, text: str, label: str) -> None:
    from weft.build import assemble
    from weft.recipes.recipe import parse_recipe

    one, two = (
        assemble(parse_recipe(recipe(folder, *form), "test"), device="cpu").data["slots"]
        for form in (("jsonl", "tokens", "slots"), (ending, text, label))
    )
    tags = [own.labels.kind.cells(own.train.targets, own.labels.names) for own in (one, two)]
    assert tags[0] == tags[1]
    assert one.train.sequences(0)[0].ids.tolist() == two.train.sequences(0)[0].ids.tolist()


def test_cut_words_are_outside_and_counted(folder: Path, model: Model) -> None:
    short = model.config.model_copy(update={"max_length": 8})
    cut = Model(model.engine, model.tokenizer, short, model.labels)
    words = cut.rows("slots", [TEXT])[0][0].words
    assert words is not None
    assert (words[:, 2] < 0).sum() == 3  # [CLS] a film sees cat , heron [SEP]: "no", "lovely" and "!" are cut
    answer = cut.predict("slots", TEXT)
    assert isinstance(answer.label, list)
    assert all(span["end"] <= 23 for span in answer.label if isinstance(span, dict))


def test_files_of_answers(folder: Path, model: Model) -> None:
    saved = pq.read_table(folder / "run/predictions/slots.parquet").to_pylist()
    assert saved[0].keys() == {"row", "text", "label", "prediction", "starts", "ends", "scores"}
    assert len(saved[0]["label"]) == len(saved[0]["starts"])
    for ending in (".csv", ".jsonl", ".parquet"):
        weft.predict_file(folder / "run", ["slots"], folder / "dev.jsonl", folder / f"out{ending}", keep_columns=[])
    table = pq.read_table(folder / "out.parquet").to_pylist()
    text = " ".join(rows(16, 1)[0]["tokens"])
    assert table[0]["label"] == model.predict("slots", text).label
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["label"] == table[0]["label"]
    assert '""start"": ' in (folder / "out.csv").read_text(encoding="utf-8")


def test_texts_that_repeat_in_other_shards(folder: Path, model: Model) -> None:
    texts = [" ".join(row["tokens"]) for row in rows(16, 5)] * 3
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    (folder / "repeats.jsonl").write_text("".join(lines), encoding="utf-8")
    out = folder / "repeats.parquet"
    weft.predict_file(folder / "run", ["slots", "intent"], folder / "repeats.jsonl", out, shard_rows=4)
    found = pq.read_table(out).to_pylist()
    assert [row["slots.label"] for row in found] == [answer.label for answer in model.predict("slots", texts)]
    assert [row["intent.label"] for row in found] == [answer.label for answer in model.predict("intent", texts)]


def test_exports_agree(folder: Path, model: Model) -> None:
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    export(folder / "run", "transformers", folder / "hub")
    words = model.rows("slots", [TEXT])[0][0].words
    assert words is not None
    tokenizer = AutoTokenizer.from_pretrained(folder / "hub/slots")
    other = AutoModelForTokenClassification.from_pretrained(folder / "hub/slots").eval()
    with torch.no_grad():
        logits = other(**tokenizer([TEXT], return_tensors="pt")).logits[0]
    best = logits.softmax(dim=1)[words[:, 2]].max(dim=1)
    (own,) = model.engine.answers("slots", model.rows("slots", [TEXT]))
    assert best.indices.tolist() == own[:, 2].tolist()
    np.testing.assert_allclose(best.values.numpy(), own[:, 3], atol=1e-5)
    assert other.config.id2label[1] == model.labels["slots"].names[1]
    export(folder / "run", "onnx", folder / "onnx")
    graph = load(folder / "onnx")
    assert [span["label"] for span in graph.predict("slots", TEXT).label] == [  # type: ignore[index, union-attr]
        span["label"]
        for span in model.predict("slots", TEXT).label  # type: ignore[index, union-attr]
    ]
    assert graph.evaluate().scores["slots"] == pytest.approx(model.evaluate().scores["slots"])


def test_a_crf_is_exported_to_onnx(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    weft.train(recipe(folder, "jsonl", "tokens", "slots", loss="crf") | {"epochs": 1}, out=folder / "crf")
    draw_scores(folder / "crf/model")
    export(folder / "crf", "onnx", folder / "crf-onnx")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    model, graph = load(folder / "crf"), load(folder / "crf-onnx")
    texts = [TEXT, "dog", *(" ".join(row["tokens"]) for row in rows(12, 5))]
    asks = [Ask(task, model.rows(task, texts)) for task in ("slots", "intent")]
    own, other = (each.engine.together(asks)[0] for each in (model, graph))
    assert [row.tolist() for row in graph.engine.answers("slots", asks[0].rows)] == [row.tolist() for row in other]
    for one, two in zip(own, other, strict=True):
        assert one[:, :3].tolist() == two[:, :3].tolist()
        np.testing.assert_allclose(one[:, 3], two[:, 3], atol=1e-5)
    assert graph.evaluate().scores["slots"] == pytest.approx(model.evaluate().scores["slots"])
    graph.engine.read_words["slots"] = most_probable  # type: ignore[attr-defined]
    alone = graph.engine.answers("slots", asks[0].rows)
    assert any(one[:, 2].tolist() != two[:, 2].tolist() for one, two in zip(own, alone, strict=True))


def draw_scores(folder: Path) -> None:
    """Give a saved model a CRF with which the best tags of a text are not those of its words."""
    model = load(folder)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.network.task("slots").loss.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random))
    save_weights(model.network, folder)
    save_settings(folder, model.config, model.labels, model.temperatures)


def test_a_crf_is_not_a_class_of_transformers(folder: Path) -> None:
    weft.train(recipe(folder, "conll", "tokens", "tags", loss="crf") | {"epochs": 1}, out=folder / "alone")
    written = export(folder / "alone", "transformers", folder / "alone-hub")
    assert written.skipped["slots"].endswith("use --to onnx, or the model folder as it is")


def test_words_have_no_embedding(model: Model) -> None:
    assert model.embed(TEXT).shape == (16,)  # by the other task
    with pytest.raises(UserError, match="has a vector for each word and none for a text"):
        model.embed(TEXT, "slots")


def test_the_report_marks_spans(folder: Path) -> None:
    page = (folder / "run/report.html").read_text(encoding="utf-8")
    assert '<mark class="tag tag' in page
    assert 'data-key="slots/type/0/f1"' in page


@pytest.mark.parametrize("ending", ["jsonl", "conll"])
def test_init_finds_words_and_tags(folder: Path, ending: str) -> None:
    files = [folder / f"{split}.{ending}" for split in ("train", "dev")]
    text = propose(files, folder / "mine.toml", lambda _, best, __: best)
    assert 'kind = "tags"' in text
    assert 'text = "tokens"' in text
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    from weft.recipes.recipe import load_recipe

    assert any(task.kind == "tags" for task in load_recipe(str(folder / "mine.toml")).tasks.values())


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"loss": "crf", "subwords": "all"}, '`subwords` is "all", but loss = "crf"'),
        ({"head": "cosine"}, "'cosine' compares two vectors"),
        ({"loss": "mse"}, "'mse' is for a regression"),
        ({"loss": "crf", "class_weights": "balanced"}, "scores whole texts"),
        ({"positive": "O"}, "is for two classes"),
    ],
)
def test_what_makes_no_sense_is_rejected(folder: Path, more: dict[str, Any], found: str) -> None:
    with pytest.raises(UserError, match=found):
        weft.train(recipe(folder, "jsonl", "tokens", "slots", **more), out=folder / "never")


def test_the_server_answers_with_spans(folder: Path, model: Model, tmp_path: Path) -> None:
    from tests.serving import Server

    server = Server(folder / "run", tmp_path / "log")
    try:
        found = server.post("/v1/predict", {"text": TEXT})["answers"]["slots"][0]["label"]
        listed = {entry["id"] for entry in server.request("GET", "/v1/models")[1]["data"]}
    finally:
        server.process.terminate()
        server.process.wait()
    expected: Any = model.predict("slots", TEXT).label
    assert [(s["start"], s["end"], s["label"]) for s in found] == [(s["start"], s["end"], s["label"]) for s in expected]
    assert listed == {"tags", "tags/intent"}  # a task with tags has no embedding
