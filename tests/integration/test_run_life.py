"""How a run ends, what it says about it, what it leaves on the disk, and what frees it."""

import json
import re
import stat
from pathlib import Path

import pytest

import weft as package
from tests.integration.command import weft
from tests.tiny import recipe_content, write_recipe


@pytest.fixture(scope="module")
def recipe_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("recipe"), recipe_content(tiny))


@pytest.fixture(scope="module")
def run(recipe_file: Path) -> Path:
    out = recipe_file.parent / "run"
    weft("train", recipe_file, "-o", out, "--budget", "steps=6")
    return out


def test_the_version_is_that_of_the_package() -> None:
    assert weft("--version").stdout == f"weft {package.__version__}\n"


def test_the_api_is_what_dir_shows() -> None:
    shown = [name for name in dir(package) if not name.startswith("__")]
    assert shown == sorted(shown)
    assert {"train", "load", "predict_file", "embed_file", "Model", "Evaluation", "UserError"} <= set(shown)
    assert all(hasattr(package, name) for name in dir(package))


def test_check_estimates_a_budget(recipe_file: Path) -> None:
    out = weft("check", recipe_file, "--budget", "steps=7").stdout
    assert "; 7 steps; on this machine roughly " in out
    assert "for one evaluation)" in out
    assert "for 3 evaluations)" in weft("check", recipe_file).stdout
    assert "expected steps=N" in weft("check", recipe_file, "--budget", "7", code=2).stderr


def test_lines_of_a_log_say_how_long_it_takes(recipe_file: Path, tmp_path: Path) -> None:
    out = weft("train", recipe_file, "-o", tmp_path / "run", "--budget", "steps=3").stdout
    assert re.search(r"^step 3/3  loss: .* tokens/s  about 0:00 left$", out, re.MULTILINE)


def test_a_run_that_stops_early_says_so_and_why(recipe_file: Path, tmp_path: Path) -> None:
    settings = ["--set", "patience=1", "--set", "optimizer.lr=1e-12", "--set", "epochs=6"]
    for more in ([], ["--resume"]):
        out = weft("train", recipe_file, "-o", tmp_path / "run", *settings, *more).stdout
        result = json.loads((tmp_path / "run" / "result.json").read_text())
        done, planned, best = result["steps"], result["planned_steps"], result["best_step"]
        assert done < planned
        assert (
            f"stopped early, after step {done} of {planned}: 1 evaluations in a row did not improve on the one after "
            f"step {best} (patience = 1)"
        ) in out
        assert f"{done} of {planned} steps in" in out


def test_a_run_that_reached_its_end_does_not(run: Path, recipe_file: Path) -> None:
    out = weft("train", recipe_file, "-o", run, "--budget", "steps=6", "--resume").stdout
    assert "all 6 steps are done: nothing is left to train" in out
    assert "stopped early" not in out
    assert "\n6 steps in" in out


@pytest.mark.parametrize("longer", [["--budget", "steps=9"], [], ["--set", "epochs=5"]])
def test_a_run_of_another_length_is_refused_and_the_way_is_named(
    run: Path, recipe_file: Path, tmp_path: Path, longer: list[str]
) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    said = weft("train", recipe_file, "-o", run, "--resume", *longer, code=2).stderr
    assert "is a run of another length" in said
    assert "steps: was 6, is now" in said
    way = re.search(r"start another run with (--body \S+ -o) NEW_RUN", said)
    assert way
    assert (run / "metrics.jsonl").read_bytes() == before
    # and the way leads somewhere
    out = weft("train", recipe_file, *way[1].split(), tmp_path / "on", "--budget", "steps=2").stdout
    assert "sentiment: starts with the head of" in out


def test_all_files_of_a_model_have_the_mode_that_the_umask_gives(run: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (run / "model").iterdir()}
    assert set(modes.values()) == {stat.S_IMODE((run / "result.json").stat().st_mode)}, modes


def test_pruning_frees_the_checkpoints_alone(run: Path, recipe_file: Path) -> None:
    kept = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and "checkpoints" not in path.parts}
    size = sum(path.stat().st_size for path in (run / "checkpoints").rglob("*") if path.is_file())
    answer = weft("predict", run, "sentiment", "a lovely film", "--json").stdout
    said = weft("prune", run).stdout
    assert said == f"{run}: freed {size / 1e6:,.1f} MB (2 checkpoints)\n"
    assert not (run / "checkpoints").exists()
    assert {path: path.read_bytes() for path in kept} == kept
    assert weft("predict", run, "sentiment", "a lovely film", "--json").stdout == answer
    assert weft("prune", run).stdout == f"{run}: has no checkpoints; nothing to free\n"
    said = weft("train", recipe_file, "-o", run, "--budget", "steps=6", "--resume", code=2).stderr
    assert f"{run}: was pruned: the checkpoints that --resume needs are deleted" in said
    assert {path: path.read_bytes() for path in kept} == kept


def test_what_cannot_be_pruned_is_left_alone(recipe_file: Path, tmp_path: Path) -> None:
    assert "is not a run folder" in weft("prune", tmp_path, code=2).stderr
    assert not list(tmp_path.iterdir())
    run = tmp_path / "run"
    weft("train", recipe_file, "-o", run, "--budget", "steps=4")
    (run / "result.json").unlink()
    assert "has not finished" in weft("prune", run, code=2).stderr
    assert (run / "checkpoints").is_dir()
    elsewhere = tmp_path / "elsewhere"
    (run / "checkpoints").rename(elsewhere)
    (run / "checkpoints").symlink_to(elsewhere)
    assert "is a symbolic link to" in weft("prune", run, "--unfinished", code=2).stderr
    assert len(list(elsewhere.iterdir())) == 2
    (run / "checkpoints").unlink()
    elsewhere.rename(run / "checkpoints")
    assert "2 checkpoints" in weft("prune", run, "--unfinished").stdout
    said = weft("train", recipe_file, "-o", run, "--budget", "steps=4", "--resume", code=2).stderr
    assert "was pruned" in said


def test_an_evaluation_prints_a_table(run: Path) -> None:
    evaluation = package.load(run).evaluate()
    lines = str(evaluation).splitlines()
    assert lines[0].split() == ["task", "metric", "score", "rows"]
    accuracy = evaluation.scores["sentiment"]["accuracy"]
    assert lines[1].split() == ["sentiment", "accuracy", f"{accuracy:.3f}", "13"]
    assert lines[-1].split() == ["overall", f"{evaluation.overall:.3f}"]
    assert repr(evaluation) == str(evaluation)
