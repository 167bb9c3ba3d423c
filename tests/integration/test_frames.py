"""Training on rows that are given in Python, from data frames to data frames."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import weft
from tests.fingerprint import fingerprint
from tests.integration import command
from tests.tiny import recipe_content
from weft.api import Quiet

FILES = ("train", "dev")


def frames(tiny: Path) -> dict[str, dict[str, Any]]:
    """The tiny data as tables of several libraries."""
    read = {
        task: {split: pd.read_csv(tiny / "data" / f"{task}-{split}.tsv", sep="\t") for split in FILES}
        for task in ("sentiment", "paraphrase", "similarity")
    }
    return {
        "sentiment": read["sentiment"],
        "paraphrase": {split: pa.Table.from_pandas(own) for split, own in read["paraphrase"].items()},
        "similarity": {split: own.to_dict("records") for split, own in read["similarity"].items()},
    }


def content(tiny: Path) -> dict[str, Any]:
    """A recipe that names columns and no files."""
    made = copy.deepcopy(recipe_content(tiny))
    for task in made["tasks"].values():
        task["data"] = {key: value for key, value in task["data"].items() if key not in FILES}
    del made["tasks"]["sentiment"]["data"]  # text and label are the defaults
    return made


def weights(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (run / "model").glob("*.safetensors")}


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("frames") / "run"
    weft.train(content(tiny), out, data=frames(tiny), device="cpu")
    return out


def test_frames_train_what_their_files_train(tiny: Path, run: Path, tmp_path: Path) -> None:
    by_files = weft.train(recipe_content(tiny), tmp_path / "files", device="cpu")
    by_frames = weft.load(run, "cpu")
    given = by_frames.evaluate(files={task: own["dev"] for task, own in frames(tiny).items()})
    assert given.scores == by_files.evaluate().scores
    assert weights(run) == weights(tmp_path / "files")


def test_the_run_says_where_its_rows_came_from(run: Path) -> None:
    recipe = tomllib.loads((run / "recipe.toml").read_text(encoding="utf-8"))
    data = recipe["tasks"]["paraphrase"]["data"]
    assert data["given"] == ["train", "dev"]
    assert (data["text"], data["text2"], data["label"]) == ("a", "b", "dup")
    assert "train" not in data
    done = command.weft("evaluate", run, code=2)
    assert "tasks.sentiment.data.dev: these rows were given in Python and are in no file" in done.stderr
    assert "weft evaluate RUN --file sentiment=FILE" in done.stderr
    done = command.weft("train", run / "recipe.toml", "-o", run.parent / "again", code=2)
    assert "weft.train(..., data={'sentiment': {'train': ...}})" in done.stderr


def test_a_run_can_be_looked_at(run: Path) -> None:
    found = weft.open_run(run)
    assert repr(found).startswith("Run run: finished, ")
    assert "overall" in repr(found)
    page = found._repr_html_()
    assert page.startswith("<table><caption>Run run: finished, ")
    assert "<td>paraphrase</td><td>accuracy</td>" in page
    with pytest.raises(weft.UserError, match="is not a run folder"):
        weft.open_run(run.parent)


class Stop(Quiet):
    """Ends a run after its third step, as a crash would."""

    def stepped(self, step: int, report: Any, seconds: float) -> None:  # noqa: ARG002
        if step == 3:
            raise RuntimeError("stopped")


def test_a_run_on_frames_resumes_exactly(tiny: Path, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(RuntimeError, match="stopped"):
        weft.train(content(tiny), out, data=frames(tiny), device="cpu", listener=Stop())
    given = frames(tiny)
    given["sentiment"]["train"]["seen"] = 1  # no column that the task reads
    weft.train(out / "recipe.toml", out, data=given, device="cpu", resume=True)
    assert fingerprint(out) == fingerprint(run)


def test_other_rows_on_resume_are_rejected(tiny: Path, run: Path) -> None:
    given = frames(tiny)
    given["sentiment"]["train"].loc[3, "text"] = "another text"
    with pytest.raises(weft.UserError, match=r"was started with another recipe \(data\.sentiment\.train: was "):
        weft.train(content(tiny), run, data=given, device="cpu", resume=True)


def test_the_model_knows_the_splits_of_its_session(tiny: Path, tmp_path: Path) -> None:
    given = frames(tiny)
    given["sentiment"]["test"] = given["sentiment"]["dev"].head(4)
    only = {key: value for key, value in content(tiny).items() if key != "tasks"}
    only["tasks"] = {"sentiment": content(tiny)["tasks"]["sentiment"]}
    model = weft.train(only, tmp_path / "run", data={"sentiment": given["sentiment"]}, steps=1, device="cpu")
    assert model.evaluate("test").scores["sentiment"]["n"] == 4
    with pytest.raises(weft.UserError, match="data.test: these rows were given in Python"):
        weft.load(tmp_path / "run").evaluate("test")


def refused(tiny: Path, given: dict[str, dict[str, Any]], **changes: Any) -> str:
    made = content(tiny) | changes
    with pytest.raises(weft.UserError) as error:
        weft.train(made, tiny / "never", data=given, device="cpu")
    assert not (tiny / "never").exists()
    return str(error.value)


def test_rows_are_checked_as_those_of_files(tiny: Path) -> None:
    given = frames(tiny)
    given["sentiment"]["train"].loc[17, "text"] = None
    given["sentiment"]["train"].loc[19, "label"] = "goof"
    made = content(tiny)
    made["tasks"]["sentiment"]["labels"] = ["bad", "good"]
    said = refused(tiny, given, tasks=made["tasks"])
    assert "row 17 of sentiment.train: column 'text' is empty, expected a text" in said
    assert "row 19 of sentiment.train: column 'label' has the label 'goof', expected one of bad, good" in said
    given = frames(tiny)
    given["similarity"]["dev"][2]["sim"] = "high"
    assert "row 2 of similarity.dev: column 'sim' has the label 'high', expected a number" in refused(tiny, given)
    given = frames(tiny)
    given["sentiment"]["dev"] = given["sentiment"]["dev"].rename(columns={"label": "stars"})
    assert refused(tiny, given) == "sentiment.dev: there is no column 'label'; the columns are 'text', 'stars'"


def test_data_that_does_not_fit_the_recipe(tiny: Path) -> None:
    given = frames(tiny)
    del given["sentiment"]["dev"]
    assert "tasks.sentiment.data.dev: is missing; give it beside train, or set `dev_fraction`" in refused(tiny, given)
    assert "data: the recipe has no task 'stars'" in refused(tiny, {"stars": frames(tiny)["sentiment"]})
    made = content(tiny)["tasks"]
    made["sentiment"]["data"] = {"dev_fraction": 0.2}
    assert "tasks.sentiment.data.dev_fraction: a dev split is given too" in refused(tiny, frames(tiny), tasks=made)
    del given["paraphrase"]
    assert "tasks.paraphrase.data.train: is missing; name the file" in refused(tiny, given, tasks=made)


def test_a_dev_fraction_splits_a_frame(tiny: Path, tmp_path: Path) -> None:
    made = content(tiny)
    made["tasks"] = {"sentiment": made["tasks"]["sentiment"] | {"data": {"dev_fraction": 0.25}}}
    given = {"sentiment": {"train": frames(tiny)["sentiment"]["train"]}}
    model = weft.train(made, tmp_path / "run", data=given, steps=1, device="cpu")
    assert 0 < model.evaluate().scores["sentiment"]["n"] < 26


def test_a_preset_gives_its_columns_alone(tiny: Path, tmp_path: Path) -> None:
    made = content(tiny)
    made["tasks"] = {"sentiment": {"kind": "classification", "data": "sst5"}}
    dev = frames(tiny)["sentiment"]["dev"].rename(columns={"text": "sentence", "label": "sentiment"})
    model = weft.train(made, tmp_path / "run", data={"sentiment": {"train": dev, "dev": dev}}, steps=1, device="cpu")
    assert model.columns("sentiment") == ["sentence"]


def test_a_dictionary_is_checked_as_a_file_is(tiny: Path, tmp_path: Path) -> None:
    wrong = recipe_content(tiny, epoch=3)
    with pytest.raises(weft.UserError, match=r"recipe: epoch: there is no such key; did you mean 'epochs'\?"):
        weft.train(wrong, tmp_path / "run")
    before = recipe_content(tiny)
    recipe = weft.load_recipe(before, settings=["optimizer.lr=0.5"], seed=3)
    assert (recipe.optimizer.lr, recipe.seed) == (0.5, 3)
    assert before == recipe_content(tiny), "the caller's dictionary stays as it is"
