"""`weft add` and `weft remove` on real runs."""

import csv
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as library
from tests.fingerprint import fingerprint as run_fingerprint
from tests.forks import Forks
from tests.integration.command import weft
from tests.tiny import BAD, GOOD, recipe_content, write_recipe, write_rows

pytestmark = pytest.mark.usefixtures("few_resamples")
TEXTS = ["a lovely film", "a dull film", "the cat"]


@pytest.fixture(scope="module")
def old(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two tasks."""
    folder = tmp_path_factory.mktemp("old")
    content = recipe_content(tiny, epochs=12, optimizer={"lr": 1e-2})
    tasks = {name: content["tasks"][name] | {"pooling": "mean"} for name in ("sentiment", "similarity")}
    weft("train", write_recipe(folder, content | {"tasks": tasks}), "-o", folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def moved(old: Path, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model where none of its data files can be found."""
    folder = tmp_path_factory.mktemp("moved")
    text = (old / "recipe.toml").read_text(encoding="utf-8")
    gone = folder / "gone"
    shutil.copytree(tiny / "data", gone)
    (folder / "old.toml").write_text(text.replace(str(tiny / "data"), str(gone)), encoding="utf-8")
    weft("train", folder / "old.toml", "-o", folder / "run")
    shutil.rmtree(gone)
    return folder / "run"


def dev_files(tiny: Path) -> list[str]:
    files = {task: tiny / "data" / f"{task}-dev.tsv" for task in ("sentiment", "similarity")}
    return [part for task, path in files.items() for part in ("--file", f"{task}={path}")]


def read_tsv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t"))


def recipe(folder: Path, tiny: Path, task: str = "paraphrase", **changes: Any) -> Path:
    content = recipe_content(tiny, **changes)
    return write_recipe(folder, content | {"tasks": {task: content["tasks"][task]}}, "new.toml")


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def result(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def test_exact_leaves_every_old_answer_as_it_is(old: Path, tiny: Path, tmp_path: Path) -> None:
    before = fingerprint(old)
    run = tmp_path / "run"
    done = weft("add", old, recipe(tmp_path, tiny), "-o", run, "--keep", "exact", "--max-drop", 0)
    assert "The gate is open." in done.stdout
    assert "the frozen layers run once per row: pooled vectors" in done.stdout
    found = result(run)
    assert set(found["answers"]) == {"sentiment", "similarity"}
    assert all(own["before"] == own["after"] for own in found["answers"].values())
    assert [own["difference"] for own in found["gate"]["tasks"]] == [0.0, 0.0]
    assert found["untrained"] == ["sentiment", "similarity"]
    one, two = library.load(old), library.load(run)
    assert two.tasks == ["sentiment", "similarity", "paraphrase"]
    assert [a.probabilities for a in one.predict("sentiment", TEXTS)] == [
        a.probabilities for a in two.predict("sentiment", TEXTS)
    ]
    assert two.predict("paraphrase", "the cat", "a cat").probabilities
    assert fingerprint(old) == before, "the old model is untouched"
    assert "Old tasks before and after" in (run / "report.html").read_text(encoding="utf-8")


def test_rehearse_trains_old_and_new_tasks(old: Path, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    weft("add", old, recipe(tmp_path, tiny), "-o", run, "--keep", "rehearse", "--max-drop", 1)
    found = result(run)
    assert found["untrained"] == []
    assert any(own["before"] != own["after"] for own in found["answers"].values())
    assert found["gate"]["when"] == "possible"


def test_exact_needs_no_train_file_of_an_old_task(old: Path, moved: Path, tiny: Path, tmp_path: Path) -> None:
    """Nor the old place of a dev file: `--file` names another one."""
    arguments = ("add", moved, recipe(tmp_path, tiny), "-o", tmp_path / "run", "--keep", "exact", "--max-drop", 0)
    failed = weft(*arguments, code=2)
    assert "the gate cannot judge the old task 'sentiment' without its dev rows" in failed.stderr.replace("\n", " ")
    assert not (tmp_path / "run").exists()
    weft(*arguments, *dev_files(tiny))
    found = result(tmp_path / "run")
    assert all(own["before"] == own["after"] for own in found["answers"].values())
    assert found["untrained"] == ["sentiment", "similarity"]
    # the digests are of the same answers, whether the files have moved or not
    weft("add", old, recipe(tmp_path, tiny), "-o", tmp_path / "two", "--keep", "exact", "--max-drop", 0)
    assert result(tmp_path / "two")["answers"] == found["answers"]


def test_distill_holds_old_tasks_without_their_data(moved: Path, tiny: Path, tmp_path: Path) -> None:
    """Everything trains, the old tasks on the old model's answers: on new texts, and on texts without labels."""
    before = fingerprint(moved)
    further = write_rows(tmp_path / "further.tsv", [{"text": f"a {word} film"} for word in (*GOOD, *BAD)])
    run = tmp_path / "run"
    arguments = ("--keep", "distill", "--max-drop", 1, "--unlabelled", further, *dev_files(tiny))
    weft("add", moved, recipe(tmp_path, tiny), "-o", run, *arguments)
    assert fingerprint(moved) == before, "the old model is untouched"
    found = result(run)
    assert found["untrained"] == []
    assert any(own["before"] != own["after"] for own in found["answers"].values())
    assert [own["task"] for own in found["gate"]["tasks"]] == ["sentiment", "similarity"]
    assert "Old tasks before and after" in (run / "report.html").read_text(encoding="utf-8")
    assert library.load(run).tasks == ["sentiment", "similarity", "paraphrase"]
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    pairs = {(row["a"], row["b"]) for row in read_tsv(tiny / "data" / "paraphrase-train.tsv")}
    texts = {text for pair in pairs for text in pair} | {row["text"] for row in read_tsv(further)}
    assert f"| sentiment | classification | single | 0 ({len(texts)} without labels) | 13 |" in card
    again = weft("train", run / "recipe.toml", "-o", tmp_path / "again", code=2)
    assert "these texts were made by `weft add` and are in no file" in again.stderr.replace("\n", " ")


def test_distill_holds_what_training_on_the_new_task_alone_loses(old: Path, tiny: Path, tmp_path: Path) -> None:
    """The same recipe, with the old tasks held by the old model's answers and without."""
    made = recipe(tmp_path, tiny, epochs=8, optimizer={"lr": 3e-3})
    alone = ("--set", 'schedule={ name = "batch-round-robin", tasks = ["paraphrase"] }')
    rows = write_rows(tmp_path / "further.tsv", [{"text": f"a {word} film"} for word in (*GOOD, *BAD)])
    losses = []
    for name, more in (("held", ("--unlabelled", rows)), ("alone", alone)):
        run = tmp_path / name
        weft("add", old, made, "-o", run, "--keep", "distill", "--max-drop", 5, "--budget", "steps=60", *more)
        rows_of = {own["task"]: own for own in result(run)["gate"]["tasks"]}
        losses.append(drift(old, run))
        assert rows_of.keys() == {"sentiment", "similarity"}
    assert losses[0] < losses[1] / 2


def drift(old: Path, new: Path) -> float:
    """The mean change of the probabilities of sentiment on its dev rows."""
    one, two = (library.load(folder) for folder in (old, new))
    texts = [row[0] for row in one.texts("sentiment", "dev")]
    first, second = (
        np.array([list((answer.probabilities or {}).values()) for answer in model.predict("sentiment", texts)])
        for model in (one, two)
    )
    return float(np.abs(first - second).mean())


def test_distill_resumes_exactly_and_only_with_the_same_texts(old: Path, tiny: Path, tmp_path: Path) -> None:
    further = write_rows(tmp_path / "further.tsv", [{"text": "a film"}, {"text": "the dog"}])
    made = recipe(tmp_path, tiny)
    arguments = ("--keep", "distill", "--max-drop", 1, "--unlabelled", further)
    weft("add", old, made, "-o", tmp_path / "straight", *arguments)
    forks = Forks(tmp_path)
    try:
        cut = ("add", old, made, "-o", tmp_path / "cut", *arguments)
        assert forks.weft(*cut, kill=["step", 5]).code == -signal.SIGKILL
        kept = further.read_bytes()
        write_rows(further, [{"text": "a film"}, {"text": "the cat"}])
        other = forks.weft(*cut, "--resume")
        assert other.code == 2
        assert "was started with another" in other.stderr
        further.write_bytes(kept)
        assert forks.weft(*cut, "--resume", kill=["evaluation", 2]).code == -signal.SIGKILL
        assert forks.weft(*cut, "--resume").code == 0
    finally:
        forks.close()
    assert run_fingerprint(tmp_path / "cut") == run_fingerprint(tmp_path / "straight")
    answers, gates = ([result(tmp_path / name)[key] for name in ("cut", "straight")] for key in ("answers", "gate"))
    assert answers[0] == answers[1]
    assert gates[0] == gates[1]


def test_what_weft_add_rejects(old: Path, tiny: Path, tmp_path: Path) -> None:
    made, run = recipe(tmp_path, tiny), tmp_path / "run"
    keep = weft("add", old, made, "-o", run, "--keep", "all", code=2)
    assert "--keep all: expected exact, rehearse or distill" in keep.stderr
    unused = weft("add", old, made, "-o", run, "--keep", "exact", "--unlabelled", made, code=2)
    assert "has an effect with --keep distill only" in unused.stderr.replace("\n", " ")
    more = weft("add", old, made, "-o", run, "--keep", "rehearse", "--answers", 5, code=2)
    assert "--answers 5: has an effect with --keep distill only" in more.stderr.replace("\n", " ")
    none = weft("add", old, made, "-o", run, "--keep", "distill", "--answers", 0, code=2)
    assert "--answers 0: expected at least 1" in none.stderr
    absent = weft("add", old, made, "-o", run, "--keep", "distill", "--unlabelled", tmp_path / "no.csv", code=2)
    assert "there is no such file" in absent.stderr
    assert not run.exists()


def test_harm_closes_the_gate(old: Path, tiny: Path, tmp_path: Path) -> None:
    """A high rate and no rehearsal: the schedule names the new task alone."""
    before = fingerprint(old)
    harmful = recipe(tmp_path, tiny, epochs=4, schedule={"name": "sequential", "tasks": ["paraphrase"]})
    arguments = ("add", old, harmful, "-o", tmp_path / "run", "--keep", "rehearse", "--set", "optimizer.lr=0.3")
    done = weft(*arguments, code=3)
    assert "The gate is closed." in done.stdout
    assert f"{old} is unchanged" in done.stdout.replace("\n", "")
    assert any(own["closes"] for own in result(tmp_path / "run")["gate"]["tasks"])
    assert fingerprint(old) == before


def test_more_data_for_an_old_task(old: Path, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    more = recipe(tmp_path, tiny, "sentiment")
    weft("add", old, more, "-o", run, "--keep", "rehearse", "--max-drop", 1)
    model = library.load(run)
    assert model.tasks == ["sentiment", "similarity"], "the additional rows are no task of the model"
    assert set(result(run)["dev"]) == {"sentiment", "similarity", "sentiment-more"}


def test_remove_leaves_the_other_answers(old: Path, tmp_path: Path) -> None:
    weft("remove", old, "similarity", "-o", tmp_path / "out")
    one, two = library.load(old), library.load(tmp_path / "out")
    assert two.tasks == ["sentiment"]
    assert [a.probabilities for a in one.predict("sentiment", TEXTS)] == [
        a.probabilities for a in two.predict("sentiment", TEXTS)
    ]
    np.testing.assert_array_equal(one.embed(TEXTS, "sentiment"), two.embed(TEXTS, "sentiment"))
    assert "was not scored" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "has no task 'mood'" in weft("remove", old, "mood", "-o", tmp_path / "o", code=2).stderr
    assert "a model needs a task" in weft("remove", tmp_path / "out", "sentiment", "-o", tmp_path / "o", code=2).stderr
    assert "already exists" in weft("remove", old, "similarity", "-o", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "o").exists()


def test_a_new_task_with_an_adapter_of_its_own(old: Path, tiny: Path, tmp_path: Path) -> None:
    """Twice: on the plain model, and on the grown one; then with more rows, which train the adapter of their task."""
    changes: dict[str, Any] = {"epochs": 1, "adapter": {"name": "lora", "per_task": True}}
    weft("add", old, recipe(tmp_path, tiny, **changes), "-o", tmp_path / "one", "--keep", "exact", "--max-drop", 0)
    content = recipe_content(tiny, **changes)
    second = write_recipe(tmp_path, content | {"tasks": {"mood": content["tasks"]["sentiment"]}}, "second.toml")
    weft("add", tmp_path / "one", second, "-o", tmp_path / "two", "--keep", "exact", "--max-drop", 0)
    assert all(own["before"] == own["after"] for own in result(tmp_path / "two")["answers"].values())
    one, two = library.load(tmp_path / "one"), library.load(tmp_path / "two")
    assert (set(one.network.adapters), set(two.network.adapters)) == ({"paraphrase"}, {"paraphrase", "mood"})
    assert one.predict("paraphrase", TEXTS, TEXTS) == two.predict("paraphrase", TEXTS, TEXTS)
    more = recipe(tmp_path, tiny, epochs=1)
    weft("add", tmp_path / "two", more, "-o", tmp_path / "more", "--keep", "rehearse", "--max-drop", 1)
    three = library.load(tmp_path / "more")
    assert set(three.network.adapters) == {"paraphrase", "mood"}
    assert three.predict("paraphrase", TEXTS, TEXTS) != two.predict("paraphrase", TEXTS, TEXTS)
    weft("remove", tmp_path / "two", "paraphrase", "-o", tmp_path / "left")
    left = library.load(tmp_path / "left")
    assert set(left.network.adapters) == {"mood"}
    assert left.predict("mood", TEXTS) == two.predict("mood", TEXTS)
