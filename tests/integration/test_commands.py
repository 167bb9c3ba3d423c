"""The commands as a user types them, on a tiny body."""

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import weft as package
from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe, write_rows
from weft.recipes.library import library


@pytest.fixture(scope="module")
def recipe_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = recipe_content(tiny, epochs=15)
    content["optimizer"]["lr"] = 5e-3
    return write_recipe(tmp_path_factory.mktemp("recipe"), content)


@pytest.fixture(scope="module")
def run(recipe_file: Path) -> Path:
    out = recipe_file.parent / "run"
    done = weft("train", recipe_file, "-o", out)
    assert "after 0 steps" in done.stdout
    assert "best so far" in done.stdout
    assert "The model is in" in done.stdout
    assert "\x1b" not in done.stdout  # plain when it is not a terminal
    return out


def test_a_run_folder_has_all_that_is_promised(run: Path) -> None:
    for name in ("recipe.toml", "environment.json", "metrics.jsonl", "result.json"):
        assert (run / name).is_file(), name
    for name in ("config.json", "model.safetensors", "tokenizer.json", "heads.safetensors", "weft.json", "README.md"):
        assert (run / "model" / name).is_file(), name
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["event"] == "step"]
    evaluations = [record for record in records if record["event"] == "evaluation"]
    assert [record["step"] for record in steps] == list(range(1, len(steps) + 1))
    assert set(steps[0]["losses"]) == {"sentiment", "paraphrase", "similarity"}
    assert [record["epoch"] for record in evaluations] == list(range(16))
    result = json.loads((run / "result.json").read_text())
    best = max(evaluations[1:], key=lambda record: record["overall"])
    assert result["overall"] == best["overall"]
    assert result["best_epoch"] == best["epoch"]
    assert result["before"]["overall"] == evaluations[0]["overall"]
    assert len(list((run / "checkpoints").iterdir())) == 2


def test_the_model_learnt_what_its_words_say(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    assert result["dev"]["sentiment"]["accuracy"] >= 0.8


def test_predictions_are_those_that_were_scored(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    rows = pq.read_table(run / "predictions" / "sentiment.parquet").to_pylist()
    assert len(rows) == 13
    right = np.mean([row["label"] == row["prediction"] for row in rows])
    assert right == pytest.approx(result["dev"]["sentiment"]["accuracy"])
    assert rows[0]["p_bad"] + rows[0]["p_good"] == pytest.approx(1)
    numbers = pq.read_table(run / "predictions" / "similarity.parquet").to_pydict()
    pearson = np.corrcoef(numbers["label"], numbers["prediction"])[0, 1]
    assert pearson == pytest.approx(result["dev"]["similarity"]["pearson"])
    assert {"text", "text2"} <= set(numbers)


def test_evaluate_gives_the_scores_of_the_run(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    scores = json.loads(weft("evaluate", run, "--json").stdout)
    assert scores["split"] == "dev"
    assert scores["overall"] == pytest.approx(result["overall"])
    for task, values in scores["tasks"].items():
        assert values == pytest.approx(result["dev"][task])
    assert "overall" in weft("evaluate", run / "model").stdout


def test_evaluate_another_file(run: Path, tiny: Path) -> None:
    train = tiny / "data" / "sentiment-train.tsv"
    scores = json.loads(weft("evaluate", run, "--file", f"sentiment={train}", "--json").stdout)
    assert list(scores["tasks"]) == ["sentiment"]
    assert scores["split"] == "file"
    assert scores["tasks"]["sentiment"]["n"] == 26


def test_predict_texts(run: Path) -> None:
    (answer,) = json.loads(weft("predict", run, "sentiment", "a lovely warm film", "--json").stdout)
    assert answer["task"] == "sentiment"
    assert answer["label"] in {"bad", "good"}
    assert answer["score"] == max(answer["probabilities"].values())
    assert set(answer["probabilities"]) == {"bad", "good"}
    (number,) = json.loads(weft("predict", run, "similarity", "the cat", "a dog", "--json").stdout)
    assert set(number) == {"task", "score"}
    assert weft("predict", run, "sentiment", "a dull film").stdout.split()[0] in {"bad", "good"}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predict_a_file(run: Path, tmp_path: Path, ending: str) -> None:
    texts = [{"a": "the cat", "b": "a cat"}, {"a": "a dog, barking", "b": "a trout"}]
    source = write_rows(tmp_path / "pairs.csv", texts, delimiter=",")
    out = tmp_path / f"answers.{ending}"
    done = weft("predict", run, "paraphrase", "--input", source, "--output", out, "--json")
    assert json.loads(done.stdout) == {"rows": 2, "output": str(out)}
    assert not done.stderr  # nothing but results in a pipe
    if ending == "parquet":
        rows = pq.read_table(out).to_pylist()
    elif ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        with out.open(newline="") as handle:
            rows = list(csv.DictReader(handle, delimiter="," if ending == "csv" else "\t"))
    model = package.load(run)
    expected = model.predict("paraphrase", ["the cat", "a dog, barking"], ["a cat", "a trout"])
    assert [row["label"] for row in rows] == [e.label for e in expected]
    assert float(rows[1]["p_1"]) == pytest.approx(expected[1].probabilities["1"])


def test_standard_column_names_work_too(run: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "pairs.tsv", [{"text": "the cat", "text2": "a cat"}])
    assert len(json.loads(weft("predict", run, "similarity", "--input", source, "--json").stdout)) == 1
    (tmp_path / "none.tsv").write_text("text\ttext2\n")
    assert weft("predict", run, "similarity", "--input", tmp_path / "none.tsv", "--json").stdout == "[]\n"


def test_embed_a_file(run: Path, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "texts.tsv", [{"text": "the cat"}, {"text": "a dog"}, {"text": "the cat"}])
    weft("embed", run, "--input", source, "--output", tmp_path / "v.npy")
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (3, 16)
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])
    weft("embed", run, "--input", source, "--output", tmp_path / "v.parquet", "--task", "sentiment")
    table = pq.read_table(tmp_path / "v.parquet").to_pydict()
    expected = package.load(run).embed(["the cat", "a dog", "the cat"], task="sentiment")
    np.testing.assert_allclose(np.array(table["embedding"]), expected, atol=1e-6)


def test_transformers_opens_the_model_folder(run: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    texts = ["the old captain refused", "fog", "a lovely film about a trout and a heron"]
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(run / "model").eval()(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    expected = (hidden * mask).sum(1) / mask.sum(1)
    ours = package.load(run).embed(texts, task="similarity")  # mean pooling
    np.testing.assert_allclose(ours, expected.numpy(), atol=1e-5)


def test_check_trains_nothing(recipe_file: Path, tmp_path: Path) -> None:
    before = sorted(recipe_file.parent.rglob("*"))
    out = weft("check", recipe_file, cwd=tmp_path).stdout
    assert "sentiment train: 26 rows; labels bad 50%, good 50%" in out
    assert "a step reads 4 sentiment, 8 paraphrase, 5 similarity" in out
    assert "in order" in out
    assert sorted(recipe_file.parent.rglob("*")) == before
    assert not list(tmp_path.iterdir())


def test_recipes_are_listed_and_printed() -> None:
    lines = weft("recipes").stdout.splitlines()
    ids = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert ids == list(library())  # one line each, however long
    assert weft("recipes", "multitask").stdout.startswith("# ")
    assert tomllib.loads(weft("recipes", "3-pcgrad").stdout) == library()["3-pcgrad"].content


def test_recipes_are_filtered_by_a_word_and_spoken_as_json() -> None:
    found = json.loads(weft("recipes", "PCGrad", "--json").stdout)
    assert [entry["id"] for entry in found] == ["2-pcgrad", "3-pcgrad", "3-pcgrad-cfimdb"]
    assert found[1]["published"]["dev"] == {"sentiment": 0.491, "paraphrase": 0.782, "similarity": 0.844}
    assert json.loads(weft("recipes", "1-decay-1", "--json").stdout)["alias"] == "1-w-0.1-1-0.2"


def test_a_budget_scales_the_run(recipe_file: Path, tmp_path: Path) -> None:
    weft("train", recipe_file, "-o", tmp_path / "run", "--budget", "steps=3", "--seed", "4", "--set", "epochs=2")
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["event"] for record in records] == ["step"] * 3 + ["evaluation"]
    assert json.loads((tmp_path / "run" / "result.json").read_text())["seed"] == 4


def test_patience_stops_early(recipe_file: Path, tmp_path: Path) -> None:
    weft("train", recipe_file, "-o", tmp_path / "run", "--set", "patience=1", "--set", "optimizer.lr=1e-12")
    evaluations = [
        record
        for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
        if (record := json.loads(line))["event"] == "evaluation"
    ]
    assert len(evaluations) == 3  # untrained, the first epoch, and one that was no better


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "{recipe}", "-o", "{run}"], "already exists; continue with --resume"),
        (["train", "nothing", "-o", "{new}"], "neither a file nor a shipped recipe"),
        (["train", "{recipe}", "-o", "{new}", "--set", "epochs=0"], "epochs: found 0"),
        (["train", "{recipe}", "-o", "{new}", "--budget", "5"], "expected steps=N"),
        (["train", "{recipe}", "-o", "{new}", "--data-dir", "/none"], "there is no such folder"),
        (["train", "{recipe}", "-o", "{new}", "--body", "./none"], "there is no folder"),
        (["train", "{recipe}", "-o", "{new}", "--device", "tpu"], "expected auto, cpu, cuda or cuda:N"),
        (["train", "{recipe}", "-o", "{new}", "--set", "max_length=100"], "the body has 64 positions"),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.sentiment.head=cosine"], 'needs reading = "bi"'),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.sentiment.reading=bi"], "needs two texts"),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.sentiment.loss=mse"], "is for a regression"),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.similarity.reading=single"], "would ignore the column"),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.sentiment.data.label=stars"], "no column 'stars'"),
        (["train", "{recipe}", "-o", "{run}", "--resume", "--seed", "3"], "recipe (seed: was 11711, is now 3)"),
        (["evaluate", "{run}", "--split", "all"], "expected train, dev or test"),
        (["evaluate", "{run}", "--split", "test"], "tasks.sentiment.data.test: is missing"),
        (["evaluate", "{run}", "--file", "sentiment"], "expected TASK=FILE"),
        (["evaluate", "{run}", "--file", "mood=x.csv"], "the model has no task 'mood'"),
        (["evaluate", "/none"], "is not a weft model"),
        (["predict", "{run}", "mood", "x"], "the model has no task 'mood'; it has sentiment, paraphrase, similarity"),
        (["predict", "{run}", "sentiment", "x", "y"], "reads one text"),
        (["predict", "{run}", "paraphrase", "x"], "reads two texts"),
        (["predict", "{run}", "sentiment"], "either a TEXT or --input"),
        (["predict", "{run}", "sentiment", "--input", "/none.csv"], "there is no such file"),
        (["predict", "{run}", "sentiment", "--input", "x.csv", "--output", "x.doc"], "ends in .csv"),
        (["predict", "{run}", "sentiment", "x", "--executor", "ray"], "--executor and --shard-rows go with --output"),
        (
            ["predict", "{run}", "sentiment", "--input", "x.csv", "--output", "x.tsv", "--executor", "pbs"],
            "--executor pbs: expected local or ray",
        ),
        (["embed", "{run}", "--input", "x.csv", "--output", "x.csv"], "ends in .npy or .parquet"),
        (["embed", "{run}", "--input", "x.csv", "--output", "none/x.npy"], "there is no folder none"),
        (["predict", "{run}", "sentiment", "--input", "x.csv", "--output", "none/x.csv"], "there is no folder none"),
        (["train", "{recipe}", "-o", "{new}", "--device", "meta"], "expected auto, cpu, cuda or cuda:N"),
        (["train", "{recipe}", "-o", "{new}", "--set", "weighting=dwa"], "acts after 200 steps"),
        (["train", "{recipe}", "-o", "{new}", "--set", "tasks.sentiment.share_head=x"], "no other task shares"),
        (["recipes", "multitsk"], "did you mean 'multitask'?"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    run: Path, recipe_file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    places = {"run": run, "recipe": recipe_file, "new": tmp_path / "new"}
    done = weft(*(a.format(**places) for a in arguments), code=2, cwd=tmp_path)
    assert message in done.stderr
    assert done.stderr.startswith("weft: ")
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_the_same_from_python(tiny: Path, recipe_file: Path, run: Path, tmp_path: Path) -> None:
    model = package.train(recipe_file, tmp_path / "run", settings=["epochs=1"])
    assert model.tasks == ["sentiment", "paraphrase", "similarity"]
    assert len(model.predict("sentiment", ["a dull film", "a warm film"])) == 2
    assert model.predict("sentiment", []) == []
    assert model.embed([]).shape == (0, 16)
    trained = package.load(run)
    assert trained.evaluate(files={"sentiment": tiny / "data" / "sentiment-dev.tsv"}).scores["sentiment"]["n"] == 13
    with pytest.raises(package.UserError, match="but 1 second"):
        trained.predict("paraphrase", ["a", "b"], ["c"])
    with pytest.raises(AttributeError):
        package.no_such_name  # noqa: B018
