"""A run that is killed at any moment and resumed ends with the same bytes as one that never was."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.registry import variants
from tests.fingerprint import fingerprint
from tests.forks import Forks
from tests.tiny import recipe_content, write_recipe
from weft.bodies.adapters import AdapterConfig
from weft.penalties import PenaltyConfig
from weft.regularizers import RegularizerConfig
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

PHASES = [
    {"epochs": 1, "trainable": "frozen", "lr": 1e-2},
    {"epochs": 1, "trainable": {"name": "layers", "layers": [1]}, "schedule": "sampled"},
    {"epochs": 1},
]
SMART = {"name": "smart", "weight": 0.5}
RECIPES: dict[str, dict[str, Any]] = {
    "learnt weights, accumulated": {"weighting": "uncertainty", "optimizer.accumulate": 2},
    "surgery and penalties": {
        "surgery": "pcgrad",
        "penalties": [{"name": "l2"}, {"name": "bregman"}, {"name": "bregman-weights"}],
    },
    "staggered with regularizers": {
        "schedule": {"name": "staggered", "first_epochs": 1},
        "tasks.sentiment.regularizer": SMART,
        "tasks.similarity.regularizer": "r-drop",
    },
    "three phases": {"phases": PHASES, "optimizer.layer_decay": 0.9, "optimizer.curve": "cosine"},
    "bf16, sampled by size": {"optimizer.precision": "bf16", "schedule": "annealed"},
    "losses compared, small sets repeated": {
        "weighting": {"name": "dwa", "every": 2},
        "schedule": {"name": "repeat-capped", "repeats": 2},
        "tasks.sentiment.class_weights": "balanced",
        "log": {"conflicts_every": 3},
    },
}
# each recipe is killed once in every one of these places: phase, and after which call
KILLS = [("step", 5), ("step", 9), ("checkpoint", 4), ("evaluation", 5), ("saving the model", 2)]


def recipe_file(tiny: Path, folder: Path, changes: dict[str, Any]) -> Path:
    content = recipe_content(tiny, epochs=3, checkpoint={"every_steps": 3})
    for key, value in changes.items():
        *tables, last = key.split(".")
        place = content
        for table in tables:
            place = place[table]
        place[last] = value
    return write_recipe(folder, content)


@pytest.fixture(scope="session")
def straight(
    tiny: Path, forks: Forks, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, dict[str, str]]]:
    """Recipe file and ending of each recipe's run that was never interrupted; made when first asked for."""

    class Endings(dict[str, tuple[Path, dict[str, str]]]):
        def __missing__(self, name: str) -> tuple[Path, dict[str, str]]:
            folder = tmp_path_factory.mktemp("straight")
            recipe = recipe_file(tiny, folder, RECIPES[name])
            done = forks.weft("train", recipe, "-o", folder / "run")
            assert done.code == 0, done.stderr
            self[name] = recipe, fingerprint(folder / "run")
            return self[name]

    return Endings()


def kill_and_resume(forks: Forks, recipe: Path, out: Path, phase: str, call: int) -> dict[str, str]:
    killed = forks.weft("train", recipe, "-o", out, kill=[phase, call])
    assert killed.code == -signal.SIGKILL, f"the run has no call {call} in {phase}: it ended with {killed.code}"
    done = forks.weft("train", recipe, "-o", out, "--resume")
    assert done.code == 0, done.stderr
    return fingerprint(out)


SHORT = [(name, *KILLS[i % len(KILLS)]) for i, name in enumerate(RECIPES)]


@pytest.mark.parametrize(("name", "phase", "call"), SHORT, ids=str)
def test_one_kill_of_each_recipe(name: str, phase: str, call: int, straight: Any, forks: Forks, tmp_path: Path) -> None:
    recipe, ending = straight[name]
    assert kill_and_resume(forks, recipe, tmp_path / "run", phase, call) == ending


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize(("phase", "call"), KILLS)
def test_thirty_kills(name: str, phase: str, call: int, straight: Any, forks: Forks, tmp_path: Path) -> None:
    recipe, ending = straight[name]
    assert kill_and_resume(forks, recipe, tmp_path / "run", phase, call) == ending


def test_thirty_kills_are_thirty_and_in_all_phases() -> None:
    counts = {phase: len(RECIPES) * sum(p == phase for p, _ in KILLS) for phase, _ in KILLS}
    assert sum(counts.values()) >= 30
    assert min(counts[phase] for phase in ("step", "checkpoint", "evaluation")) >= 5


@pytest.mark.long
def test_killed_at_every_sync_of_a_checkpoint_and_of_a_model(straight: Any, forks: Forks, tmp_path: Path) -> None:
    recipe, ending = straight["learnt weights, accumulated"]
    for phase, calls in (("checkpoint", range(1, 9)), ("saving the model", range(1, 12))):
        for call in calls:
            out = tmp_path / f"{phase} {call}"
            assert kill_and_resume(forks, recipe, out, phase, call) == ending, (phase, call)


@pytest.mark.parametrize("phase", ["loading the best model", "evaluation", "saving weights", "between steps"])
def test_killed_in_the_final_evaluation(tiny: Path, forks: Forks, tmp_path: Path, phase: str) -> None:
    """The run evaluates a sample of the dev rows, and the best model on all of them at the end."""
    recipe = recipe_file(tiny, tmp_path, {"dev_sample": 5, "average": "ema", "optimizer.lr": 5e-3})
    whole = forks.weft("train", recipe, "-o", tmp_path / "whole")
    assert whole.code == 0, whole.stderr
    records = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()
    assert '"event": "final"' in records[-1]
    evaluations = sum('"event": "step"' not in record for record in records)
    last = {
        "loading the best model": 1,
        "evaluation": 6 * evaluations - 3,  # dev and train rows of three tasks in each evaluation
        "saving weights": sum('"best": true' in record for record in records),
        "between steps": len(records),
    }
    ending = kill_and_resume(forks, recipe, tmp_path / "run", phase, last[phase])
    assert ending == fingerprint(tmp_path / "whole")


def test_killed_again_and_again(straight: Any, forks: Forks, tmp_path: Path) -> None:
    """Each life is cut off in another place, until one reaches the end."""
    recipe, ending = straight["three phases"]
    out = tmp_path / "run"
    for phase, call in [
        ("step", 5),
        ("between steps", 3),
        ("checkpoint", 4),
        ("evaluation", 2),
        ("saving the model", 2),
    ]:
        assert forks.weft("train", recipe, "-o", out, "--resume", kill=[phase, call]).code == -signal.SIGKILL
    assert forks.weft("train", recipe, "-o", out, "--resume").code == 0
    assert fingerprint(out) == ending


def variations() -> dict[str, dict[str, Any]]:
    fixed = {"name": "fixed", "weights": {"sentiment": 0.1, "paraphrase": 1.0, "similarity": 0.2}}
    special: dict[str, Any] = {"fixed": fixed, "dwa": {"name": "dwa", "every": 1}}
    found: dict[str, dict[str, Any]] = {f"schedule {name}": {"schedule": name} for name in variants(ScheduleConfig)}
    found |= {f"weighting {name}": {"weighting": special.get(name, name)} for name in variants(WeightingConfig)}
    found |= {f"surgery {name}": {"surgery": name} for name in variants(SurgeryConfig)}
    found |= {f"regularizer {name}": {"tasks.sentiment.regularizer": name} for name in variants(RegularizerConfig)}
    found |= {f"penalty {name}": {"penalties": [{"name": name}]} for name in variants(PenaltyConfig)}
    found |= {f"adapter {name}": {"adapter": {"name": name, "per_task": True}} for name in variants(AdapterConfig)}
    found["shared adapter"] = {"adapter": {"name": "lora", "dropout": 0.1}, "surgery": "pcgrad"}
    found["accumulate"] = {"optimizer.accumulate": 3}
    found["gradient checkpointing"] = {"optimizer.gradient_checkpointing": True}
    found["layer factors"] = {"tasks.sentiment.layer_factors": {"layers": [1], "beta": 2.0}}
    found["fp64"] = {"optimizer.precision": "fp64"}
    return found


@pytest.mark.long
@pytest.mark.parametrize("changes", variations().values(), ids=variations())
def test_every_variant_resumes_exactly(changes: dict[str, Any], tiny: Path, forks: Forks, tmp_path: Path) -> None:
    recipe = recipe_file(tiny, tmp_path, changes)
    assert forks.weft("train", recipe, "-o", tmp_path / "straight").code == 0
    assert kill_and_resume(forks, recipe, tmp_path / "killed", "between steps", 9) == fingerprint(tmp_path / "straight")
