"""`weft study` from the command line: what it writes, refuses and survives."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import WEFT, weft
from tests.tiny import recipe_content, write_recipe

STUDY = """
name = "tiny"
base = "recipe.toml"
seeds = [1, 2, 3]
budget = { steps = 6 }
baseline = "plain"

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
text = "a cosine matches a linear head"
better = "cosine"
worse = "plain"
metric = "similarity.pearson"
margin = 0.05
"""


@pytest.fixture(scope="module")
def place(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_recipe(folder, recipe_content(tiny, log={"train_rows": 0}))
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def straight(place: Path) -> Path:
    """The study, run to its end."""
    weft("study", place / "study.toml", "-o", place / "straight", "--jobs", 2)
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
    assert [claim["text"] for claim in result["claims"]] == ["a higher rate helps", "a cosine matches a linear head"]
    assert {claim["verdict"] for claim in result["claims"]} <= {"supported", "refuted", "undecided"}
    assert all(claim["low"] <= claim["difference"] <= claim["high"] for claim in result["claims"])
    for name, arm in result["arms"].items():
        for seed in ("1", "2", "3"):
            run = json.loads((straight / "runs" / f"{name}-{seed}" / "result.json").read_text())
            assert (run["steps"], run["best_step"]) == (6, 6)
            assert arm["metrics"]["overall"]["seeds"][seed] == pytest.approx(run["overall"])
            assert arm["cost"]["tokens"]["seeds"][seed] == run["tokens"]
    assert "a higher rate helps" in (straight / "study.md").read_text()
    assert "a higher rate helps" in (straight / "study.html").read_text()


def test_killed_half_way_and_started_again_it_ends_with_the_same_table(place: Path, straight: Path) -> None:
    command = [*WEFT, "study", str(place / "study.toml"), "-o", str(place / "killed"), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    runs = place / "killed" / "runs"
    ends = time.monotonic() + 120
    while len(list(runs.glob("*/result.json"))) < 4:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < ends
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (place / "killed" / "study.json").exists()
    done = len(list(runs.glob("*/result.json")))
    assert done < 9
    again = weft(*command[len(WEFT) :])
    assert f"{done} of 9 runs are done already" in again.stdout
    assert table(place / "killed") == table(straight)
    tables = [(out / "study.md").read_text().split("## Cost")[0] for out in (place / "killed", straight)]
    assert tables[0] == tables[1]
