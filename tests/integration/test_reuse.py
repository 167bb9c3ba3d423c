"""Runs that two studies share: copied instead of trained, only if everything that determines them is equal."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import write_starter_recipe
from tests.unit.study.here import Here
from weft.foundation.errors import UserError
from weft.runs.folder import RunPaths
from weft.study.format import load_study
from weft.study.plan import StudyPlan, plan_study
from weft.study.records import StudyResult
from weft.study.runner import run_study

STUDY = """
name = "first"
base = "recipe.toml"
seeds = [1, 2]
budget = { steps = 2 }
baseline = "plain"

[arms.plain]
[arms.fast]
"optimizer.lr" = 1e-2
"""
SECOND = STUDY.replace('"first"', '"second"').replace("plain", "same").replace("1e-2", "2e-2")


@pytest.fixture(scope="module")
def place(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reuse")
    write_starter_recipe(folder, tiny)
    return folder


def planned(place: Path, text: str) -> StudyPlan:
    file = place / "study.toml"
    file.write_text(text, encoding="utf-8")
    return plan_study(load_study(str(file)))


def run(plan: StudyPlan, out: Path, reuse: list[Path]) -> tuple[list[str], StudyResult]:
    """Run a study to its end; returns what it said and its result."""
    said: list[str] = []
    result = run_study(plan, out, Here(1), said.append, reuse)
    assert result.finished
    return said, result


@pytest.fixture(scope="module")
def first(place: Path) -> Path:
    run(planned(place, STUDY), place / "first", [])
    return place / "first"


def scores(result: StudyResult) -> Any:
    return {name: arm.metrics for name, arm in result.arms.items()}


def test_equal_runs_are_copied_and_give_what_training_gives(place: Path, first: Path) -> None:
    plan = planned(place, SECOND)
    said, result = run(plan, place / "second", [first])
    assert result.reused == {"same-1": "first/plain-1", "same-2": "first/plain-2"}
    assert json.loads((place / "second" / "study.json").read_text())["reused"] == result.reused
    assert said[:2] == ["same-1: reused from first/plain-1", "same-2: reused from first/plain-2"]
    assert said[2] == "2 of 4 runs are already finished"
    assert [line.split(":")[0] for line in said[3:]] == ["[3/4] fast-1", "[4/4] fast-2"]
    trained, other = run(plan, place / "trained", [])
    assert len(trained) == 4
    assert not other.reused
    assert scores(result) == scores(other)
    answers = [RunPaths(place / out / "runs" / "same-2").answers("sentiment") for out in ("second", "trained")]
    assert answers[0].read_bytes() == answers[1].read_bytes()
    # a copy of a copy names the study that trained the run; a study that is resumed without --reuse still knows
    third = planned(place, SECOND.replace('"second"', '"third"'))
    _, copied = run(third, place / "third", [place / "second"])
    assert copied.reused == result.reused | {"fast-1": "second/fast-1", "fast-2": "second/fast-2"}
    assert run(third, place / "third", [])[1].reused == copied.reused


@pytest.mark.parametrize(
    ("file", "key", "value", "why"),
    [
        ("runs/plain-1/result.json", "steps", 3, "steps was 3, is now 2"),
        ("runs/plain-1/environment.json", "threads", 77, "environment.threads was 77, is now"),
    ],
)
def test_a_run_under_other_conditions_is_not_reused(
    place: Path, first: Path, tmp_path: Path, file: str, key: str, value: object, why: str
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(first, changed)
    content = json.loads((changed / file).read_text()) | {key: value}
    (changed / file).write_text(json.dumps(content))
    said, result = run(planned(place, SECOND), tmp_path / "out", [changed])
    assert list(result.reused) == ["same-2"]
    assert said[0].startswith(f"same-1: not reused from first/plain-1: {why}")


@pytest.mark.parametrize("section", ["data", "bodies"])
def test_other_data_or_another_body_is_not_reused(place: Path, first: Path, tmp_path: Path, section: str) -> None:
    """The digests of all files stand in study.toml."""
    changed = tmp_path / "changed"
    shutil.copytree(first, changed)
    study = changed / "study.toml"
    digest = next(iter(getattr(load_study(str(study)).study, section).values()))
    study.write_text(study.read_text().replace(digest, "0" * 64))
    said, result = run(planned(place, SECOND), tmp_path / "out", [changed])
    assert not result.reused
    assert f"was '{'0' * 64}', is now '{digest}'" in said[0]


def test_another_recipe_or_seed_is_not_reused(place: Path, first: Path, tmp_path: Path) -> None:
    plan = planned(place, SECOND.replace("[1, 2]", "[2, 3]"))
    said, result = run(plan, tmp_path / "out", [first])
    assert result.reused == {"same-2": "first/plain-2"}
    assert not [line for line in said if "not reused" in line]


def test_a_study_without_digests_of_its_body_gets_them_when_resumed(place: Path, first: Path, tmp_path: Path) -> None:
    """Studies of older versions have none."""
    older = tmp_path / "older"
    shutil.copytree(first, older)
    study = older / "study.toml"
    whole = study.read_text()
    assert whole.count("[bodies]") == 1, "the last section"
    study.write_text(whole.partition("[bodies]")[0])
    said, _ = run(planned(place, SECOND), tmp_path / "out", [older])
    assert said[0] == "same-1: not reused from first/plain-1: its study did not record body"
    run(planned(place, STUDY), older, [])
    assert study.read_text() == whole


def test_a_folder_without_a_study_is_rejected(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--reuse .*: is not the folder of a study"):
        run(planned(place, SECOND), tmp_path / "out", [tmp_path])
