"""A study of three arms and three seeds on the starter data: what it writes, refuses and survives."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import WEFT, weft
from tests.tiny import recipe_content, write_recipe, write_starter_recipe
from tests.unit.study.here import Here
from weft.cli.options import time_seconds
from weft.cli.study import study as study_command
from weft.foundation.errors import UserError
from weft.inference.model import load
from weft.recipes import check
from weft.recipes.recipe import load_recipe
from weft.study.executors import EXECUTORS
from weft.study.executors.local import LocalStudyExecutor
from weft.study.format import load_study
from weft.study.plan import StudyPlan, plan_study
from weft.study.reader import open_study
from weft.study.runner import _job, run_study
from weft.study.sharing import sharing_study

STUDY = """
name = "tiny"
base = "recipe.toml"
seeds = [1, 2, 3]
budget = { steps = 6 }
baseline = "plain"

[set]
"optimizer.weight_decay" = 0.02

[arms.plain]
[arms.fast]
"optimizer.lr" = 1e-2
[arms.cosine]
"tasks.similarity.head" = "cosine"

[[claims]]
text = "a higher rate helps"
better = "fast"
worse = "plain"
metric = "overall"

[[claims]]
text = "a cosine <matches> a linear head"
better = "cosine"
worse = "plain"
metric = "similarity.pearson"
margin = 0.05
number = 3
published_by = "report 4"
"""


@pytest.fixture(scope="module")
def place(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_starter_recipe(folder, tiny)
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def plan(place: Path) -> StudyPlan:
    return plan_study(load_study(str(place / "study.toml")), device="auto")


@pytest.fixture(scope="module")
def straight(place: Path, plan: StudyPlan) -> Path:
    """The study, run to its end."""
    run_study(plan, place / "straight", Here(1), print)
    return place / "straight"


def table(out: Path) -> dict[str, Any]:
    """study.json without what may differ between two runs of the same study: times and memory."""
    found: dict[str, Any] = json.loads((out / "study.json").read_text())
    for arm in found["arms"].values():
        arm["cost"] = arm["cost"]["tokens"]
    for claim in found["claims"]:
        del claim["cost_ratios"]
    return found


def test_a_study_answers_its_claims(straight: Path) -> None:
    result = json.loads((straight / "study.json").read_text())
    assert result["finished"]
    assert [claim["text"] for claim in result["claims"]] == ["a higher rate helps", "a cosine <matches> a linear head"]
    assert {claim["verdict"] for claim in result["claims"]} <= {"supported", "refuted", "undecided"}
    assert all(claim["low"] <= claim["difference"] <= claim["high"] for claim in result["claims"])
    for name, arm in result["arms"].items():
        for seed in ("1", "2", "3"):
            run = json.loads((straight / "runs" / f"{name}-{seed}" / "result.json").read_text())
            assert (run["steps"], run["best_step"], run["seed"]) == (6, 6, int(seed))
            assert arm["metrics"]["overall"]["seeds"][seed] == pytest.approx(run["overall"])
            assert arm["cost"]["tokens"]["seeds"][seed] == run["tokens"]
    assert [claim.get("published_by") for claim in result["claims"]] == [None, "report 4"]
    assert result["set"] == {"optimizer.weight_decay": 0.02}
    assert "| all arms | optimizer.weight_decay | 0.02 |" in (straight / "study.md").read_text()
    assert "a higher rate helps" in (straight / "study.md").read_text()
    assert "similarity.pearson, margin 0.05; published by report 4, claim 3)" in (straight / "study.md").read_text()
    page = (straight / "study.html").read_text()
    assert "a cosine &lt;matches&gt; a linear head" in page
    assert "default-src 'none'" in page


def test_a_study_can_be_looked_at(straight: Path) -> None:
    found = open_study(straight)
    assert "a higher rate helps: " in repr(found)
    assert list(found.result.arms) == list(json.loads((straight / "study.json").read_text())["arms"])
    assert "a cosine &lt;matches&gt; a linear head" in found._repr_html_()
    assert "<matches>" not in found._repr_html_()
    with pytest.raises(UserError, match="is not a study"):
        open_study(straight.parent)


def test_a_resolved_study_is_the_same_study(straight: Path, plan: StudyPlan) -> None:
    """OUT/study.toml holds everything: it can be run by itself, from anywhere."""
    again = plan_study(load_study(str(straight / "study.toml")))
    assert again.study == plan.study
    assert {name: arm.recipe for name, arm in again.arms.items()} == {n: a.recipe for n, a in plan.arms.items()}


def test_killed_half_way_and_started_again_it_ends_with_the_same_table(
    place: Path, plan: StudyPlan, straight: Path
) -> None:
    out = place / "killed"
    command = [*WEFT, "study", str(place / "study.toml"), "-o", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    ends = time.monotonic() + 500
    while len(list(out.glob("runs/*/result.json"))) < 4:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < ends
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(out.glob("runs/*/result.json")))
    assert done < 9
    assert not (out / "study.json").exists()
    said: list[str] = []
    run_study(plan, out, LocalStudyExecutor(2), said.append)
    assert said[0].endswith("of 9 runs are already finished")
    assert len(said) == 1 + 9 - int(said[0].split()[0])
    assert table(out) == table(straight)
    tables = [(folder / "study.md").read_text().split("## Cost")[0] for folder in (out, straight)]
    assert tables[0] == tables[1]


def test_a_run_that_is_killed_is_recorded_and_the_others_go_on(plan: StudyPlan, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    arms = list(plan.arms.values())
    jobs = [_job(plan, tmp_path, arm, 1, None) for arm in arms[:2]]

    def kill_the_first() -> None:
        log = Path(jobs[0].log)
        while not (log.exists() and "process" in log.read_text()):
            time.sleep(0.001)
        os.kill(int(log.read_text().split()[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    ended = {end.job.name: end.failure for end in LocalStudyExecutor(1).run(jobs)}
    killer.join()
    assert ended == {"plain-1": "was killed by SIGKILL, possibly because memory ran out", "fast-1": None}


def test_a_run_that_fails_is_recorded_and_tried_again(place: Path, tmp_path: Path) -> None:
    text = (
        STUDY.replace("1e-2", "1e30").replace("seeds = [1, 2, 3]", "seeds = [1, 2]").replace("steps = 6", "steps = 4")
    )
    (place / "bad.toml").write_text(text, encoding="utf-8")
    bad = plan_study(load_study(str(place / "bad.toml")))
    result = run_study(bad, tmp_path / "out", Here(1), print)
    assert set(result.failures) == {"fast-1", "fast-2"}
    assert "is not a finite number" in result.failures["fast-1"]
    assert not result.finished
    verdicts = {claim.text: claim for claim in result.claims}
    assert verdicts["a higher rate helps"].verdict == "undecided"
    assert verdicts["a higher rate helps"].why == "no run of fast finished"
    assert verdicts["a cosine <matches> a linear head"].difference is not None
    said: list[str] = []
    run_study(bad, tmp_path / "out", Here(1), said.append)
    assert said[0] == "4 of 6 runs are already finished"
    assert len(said) == 3


def test_the_origin_of_a_claim_may_change(place: Path, straight: Path) -> None:
    """It decides nothing, so a study that has started goes on with it."""
    (place / "origin.toml").write_text(STUDY.replace("report 4", "nobody"), encoding="utf-8")
    said: list[str] = []
    result = run_study(plan_study(load_study(str(place / "origin.toml"))), straight, Here(1), said.append)
    assert said == ["9 of 9 runs are already finished"]
    assert result.claims[1].published_by == "nobody"
    run_study(plan_study(load_study(str(place / "study.toml"))), straight, Here(1), print)


def test_another_study_is_refused_with_what_differs(place: Path, straight: Path) -> None:
    (place / "other.toml").write_text(STUDY.replace("steps = 6", "steps = 7"), encoding="utf-8")
    other = plan_study(load_study(str(place / "other.toml")))
    before = (straight / "study.json").read_bytes()
    with pytest.raises(UserError, match=r"budget.steps: was 6, is now 7"):
        run_study(other, straight, Here(1), print)
    assert (straight / "study.json").read_bytes() == before
    with pytest.raises(UserError, match="is not a study"):
        run_study(other, place / "straight" / "runs", Here(1), print)


def test_the_plan_says_what_would_run_and_trains_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_command(str(place / "study.toml"), plan=True)
    said = capsys.readouterr().out
    assert "3 arms x 3 seeds (1, 2, 3), 6 steps each" in said
    assert "9 runs, about" in said
    study_command(str(place / "study.toml"), plan=True, seeds="4,5,4")
    assert "3 arms x 2 seeds (4, 5), 6 steps each" in capsys.readouterr().out
    with pytest.raises(UserError, match="--seeds 1,x: expected numbers with commas between them"):
        study_command(str(place / "study.toml"), plan=True, seeds="1,x")
    with pytest.raises(UserError, match="-o"):
        study_command(str(place / "study.toml"))
    with pytest.raises(UserError, match="--executor slurm: expected local or ray"):
        study_command(str(place / "study.toml"), plan=True, executor="slurm")


def test_did_sharing_help(place: Path, tmp_path: Path) -> None:
    source = sharing_study(load_recipe(place / "recipe.toml"), seeds=[1], steps=4)
    result = run_study(plan_study(source), tmp_path / "out", Here(1), print)
    assert result.finished
    assert [(c.better, c.worse) for c in result.claims] == [
        ("shared", f"{task}-{measure}")
        for task in ("sentiment", "paraphrase", "similarity")
        for measure in ("steps", "compute")
    ]
    tokens = {name: arm.cost.tokens.mean for name, arm in result.arms.items()}
    for task in ("sentiment", "paraphrase", "similarity"):
        assert result.arms[f"{task}-steps"].steps == 4
        assert tokens[f"{task}-compute"] == pytest.approx(tokens["shared"], rel=0.25)  # whole steps of tiny batches
    pairs = [pair.tasks for pair in result.conflicts["shared"]]
    assert pairs == [("sentiment", "paraphrase"), ("sentiment", "similarity"), ("paraphrase", "similarity")]


def test_sharing_limited_to_tasks_and_to_a_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "multiply_rate", lambda _: 1e7)  # estimates follow from it, and must not vary
    loaded = load_recipe(place / "recipe.toml")
    tasks = ["similarity", "sentiment"]
    whole = plan_study(sharing_study(loaded, seeds=[1, 2], steps=400, tasks=tasks))
    assert list(whole.arms) == [
        "shared",
        *(f"{t}-{m}" for t in ("sentiment", "similarity") for m in ("steps", "compute")),
    ]
    assert list(whole.arms["shared"].recipe.tasks) == ["sentiment", "paraphrase", "similarity"]
    assert {claim.metric.split(".")[0] for claim in whole.study.claims} == set(tasks)
    limit = whole.seconds / 3
    short = plan_study(sharing_study(loaded, seeds=[1, 2], steps=400, tasks=tasks, max_seconds=limit))
    assert 0.9 * limit < short.seconds < 1.02 * limit
    steps = {arm: own.steps for arm, own in short.arms.items()}
    assert steps["shared"] == steps["sentiment-steps"] == steps["similarity-steps"] < 400
    enough = sharing_study(loaded, seeds=[1, 2], steps=400, tasks=tasks, max_seconds=2 * whole.seconds)
    assert enough.study.budget.steps == 400, "more time does not train more"
    with pytest.raises(UserError, match=r"--max-time: evaluation and one step of 5 arms x 2 seeds take about"):
        sharing_study(loaded, seeds=[1, 2], steps=400, tasks=tasks, max_seconds=0.01)
    with pytest.raises(UserError, match="--task mood: expected some of sentiment, paraphrase, similarity"):
        sharing_study(loaded, seeds=[1], steps=4, tasks=["mood"])


def test_an_arm_learns_from_the_runs_of_other_arms_with_its_seed(place: Path, tmp_path: Path) -> None:
    text = STUDY.partition("[arms.plain]")[0].replace("[1, 2, 3]", "[1, 2]").replace("steps = 6", "steps = 2")
    text += '[arms.student]\nteachers = ["plain", "cosine"]\n"distill.weight" = 0.25\n'
    text += '[arms.plain]\n[arms.cosine]\n"tasks.similarity.head" = "cosine"\n'
    (place / "taught.toml").write_text(text, encoding="utf-8")
    said: list[str] = []
    out = tmp_path / "out"
    result = run_study(plan_study(load_study(str(place / "taught.toml"))), out, Here(1), said.append)
    assert result.finished
    assert [line.split()[1].rstrip(":") for line in said] == [
        *("plain-1", "cosine-1", "plain-2", "cosine-2"),
        *("student-1", "student-2"),
    ]
    for seed in (1, 2):
        distill = load_recipe(out / "runs" / f"student-{seed}" / "recipe.toml").distill
        assert distill is not None
        assert distill.teachers == tuple(str(out / "runs" / f"{arm}-{seed}") for arm in ("plain", "cosine"))
    # without its teachers, a student fails and the others go on
    broken = text.replace("[arms.plain]", '[arms.plain]\n"optimizer.lr" = 1e30')
    (place / "untaught.toml").write_text(broken, encoding="utf-8")
    result = run_study(plan_study(load_study(str(place / "untaught.toml"))), tmp_path / "broken", Here(1), print)
    assert set(result.failures) == {"plain-1", "plain-2", "student-1", "student-2"}
    assert result.failures["student-2"] == "its teacher plain-2 failed"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), (None, None)])
def test_a_time_with_its_unit(text: str | None, seconds: float | None) -> None:
    assert time_seconds(text) == seconds


@pytest.mark.parametrize("text", ["90", "0s", "soon", "-3m", "1h30m"])
def test_a_time_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match="expected a number with a unit, such as 90s, 30m or 2h"):
        time_seconds(text)


def test_names_with_spaces(tiny: Path, tmp_path: Path) -> None:
    """Tasks, arms and the study: in keys as they are, in files and on pages without spaces."""
    content = recipe_content(tiny)
    content["tasks"] = {f"the {name}": task for name, task in content["tasks"].items() if name != "paraphrase"}
    write_recipe(tmp_path, content)
    text = STUDY.replace('name = "', 'name = "my ').replace("similarity", "the similarity")
    text = text.replace("[arms.fast]", '[arms."much faster"]').replace('"fast"', '"much faster"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plan = plan_study(load_study(str(tmp_path / "study.toml")))
    out = tmp_path / "out"
    result = run_study(plan, out, Here(1), print)
    assert result.finished
    assert "much faster" in result.arms
    run = out / "runs" / "much_faster-1"
    assert (out / "logs" / "much_faster-1.log").is_file()
    assert {file.name for file in (run / "predictions").iterdir()} == {
        "the_sentiment.parquet",
        "the_similarity.parquet",
    }
    page = (run / "report.html").read_text(encoding="utf-8")
    assert not [found for found in re.findall(r' id="([^"]*)"', page) if " " in found]
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(re.findall(r' id="([^"]*)"', page))
    lines = (out / "study.md").read_text(encoding="utf-8")
    assert "- overall = mean of the sentiment accuracy, (1 + the similarity pearson) / 2" in lines
    assert not re.findall(r' id="[^"]* [^"]*"', (out / "study.html").read_text(encoding="utf-8"))
    assert load(run).predict("the sentiment", ["a warm film"])[0].task == "the sentiment"


@pytest.mark.long
def test_ray_gives_the_same_table(plan: StudyPlan, place: Path, straight: Path) -> None:
    run_study(plan, place / "ray", EXECUTORS["ray"](2), print)
    assert table(place / "ray") == table(straight)


@pytest.mark.long
def test_the_command_line_says_what_it_found(place: Path) -> None:
    done = weft("study", place / "study.toml", "-o", place / "command", "--set", "epochs=3")
    assert "undecided  a higher rate helps" in done.stdout
    assert "[9/9]" in done.stdout
    assert "weft: " in weft("study", "raedings", code=2).stderr
