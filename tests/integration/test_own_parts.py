"""Components of one's own in every room: trained, killed, resumed, loaded, exported, and never imported unasked."""

import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.faults.test_hostile_models import reseal
from tests.fingerprint import fingerprint
from tests.integration.command import start
from tests.integration.command import weft as command
from tests.integration.test_resume import wait_for_steps
from tests.integration.test_sweep import Listening
from tests.integration.together import train_together
from tests.tiny import recipe_content, write_recipe
from weft.export import export
from weft.foundation.errors import UserError
from weft.recipes.recipe import load_recipe, parse_recipe
from weft.study.executors import EXECUTORS
from weft.study.format import load_study
from weft.study.plan import plan_study
from weft.study.runner import run_study
from weft.sweep.config import load_sweep
from weft.sweep.search import run_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
SOURCE = Path(__file__).parents[1] / "own_parts.py"


def content_of(tiny: Path, module: str = "own_parts", **changes: Any) -> dict[str, Any]:
    """A recipe with a part of one's own wherever there can be one."""
    content = recipe_content(tiny, **changes)
    sentiment, _, similarity = content["tasks"].values()
    sentiment["loss"] = {"use": f"{module}:FocalConfig", "gamma": 1.5}
    sentiment["head"] = {"use": f"{module}:GatedConfig"}
    similarity["pooling"] = {"use": f"{module}:SumConfig"}
    content["optimizer"] = content["optimizer"] | {"lr": 1e-4}
    return content | training_of(content, module)


def training_of(content: dict[str, Any], module: str = "own_parts") -> dict[str, Any]:
    """The parts that act in training alone."""
    content["tasks"]["sentiment"]["regularizer"] = {"use": f"{module}:ConsistencyConfig", "weight": 0.2}
    half = content["epochs"] // 2
    return {
        "phases": [{"epochs": half}, {"epochs": half, "schedule": {"use": f"{module}:RotatingConfig"}}],
        "weighting": {"use": f"{module}:LearnedConfig"},
        "surgery": {"use": f"{module}:NormalizedGradientsConfig"},
        "penalties": ["l2", {"use": f"{module}:AnchorConfig", "weight": 0.01}],
    }


@pytest.fixture(scope="module")
def place(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """recipe.toml with its module beside it."""
    folder = tmp_path_factory.mktemp("own").resolve()
    shutil.copy(SOURCE, folder / "own_parts.py")
    write_recipe(folder, content_of(tiny, epochs=6))
    return folder


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    command("train", place / "recipe.toml", "-o", place / "run", "--trust-code")
    return place / "run"


def test_killed_and_resumed(place: Path, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    arguments = ("train", place / "recipe.toml", "-o", out, "--resume", "--trust-code")
    process = start(*arguments)
    wait_for_steps(out, 5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (out / "result.json").exists()
    assert "going on after step" in command(*arguments).stdout
    assert fingerprint(out) == fingerprint(run)


def test_a_run_records_the_code_and_the_recipe_reads_back(place: Path, run: Path) -> None:
    code = json.loads((run / "environment.json").read_text())["code"]
    assert len(code) == 8
    assert code["own_parts:FocalConfig"]["file"] == str(place / "own_parts.py")
    assert code["own_parts:FocalConfig"]["version"] == "1.5"
    read, written = (load_recipe(file).with_code(True, "x")[0] for file in (place / "recipe.toml", run / "recipe.toml"))
    assert read == written
    card = (run / "model" / "README.md").read_text()
    assert str(place) not in card
    assert 'weft.load(".", trust_code=True)' in card
    assert "own_parts:FocalConfig, own_parts:GatedConfig, own_parts:SumConfig" in card


@pytest.mark.parametrize("name", ["train", "check"])
def test_a_recipe_runs_no_code_unless_trusted(place: Path, tmp_path: Path, name: str) -> None:
    out = ["-o", tmp_path / "run"] if name == "train" else []
    told = command(name, place / "recipe.toml", *out, code=2).stderr
    assert "tasks.sentiment.loss: found 'own_parts:FocalConfig'" in told
    assert "penalties.1: found 'own_parts:AnchorConfig'" in told
    assert "--trust-code" in told
    assert not (tmp_path / "run").exists()


def test_a_checked_recipe(place: Path) -> None:
    assert "in order" in command("check", place / "recipe.toml", "--trust-code").stdout


def test_a_recipe_made_in_python_needs_trust_too(place: Path, tiny: Path, tmp_path: Path) -> None:
    recipe = parse_recipe(content_of(tiny, code=str(place)), "mine")
    with pytest.raises(UserError, match="trust_code=True"):
        weft.train(recipe, tmp_path / "run")


def test_answers_need_trust(run: Path) -> None:
    with pytest.raises(UserError) as raised:
        weft.load(run)
    told = str(raised.value)
    assert "weft.json: tasks.sentiment.head: found 'own_parts:GatedConfig'" in told
    assert "tasks.similarity.pooling" in told
    assert "regularizer" not in told
    model = weft.load(run, trust_code=True)
    assert model.predict("sentiment", "a dull film").label in ("bad", "good")
    assert model.embed(["a cat"], "similarity").shape == (1, 16)
    question = ("predict", run, "sentiment", "a dull film")
    assert "'own_parts'" in command(*question, code=2).stderr
    assert command(*question, "--trust-code").stdout
    for name in ("evaluate", "probe"):
        assert "--trust-code" in command(name, run, code=2).stderr
        assert command(name, run, "--trust-code").stdout


def test_files_of_texts(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\na dull film\n", encoding="utf-8")
    files = ("--input", tmp_path / "in.csv", "--output")
    for arguments in (
        ("predict", run, "sentiment", *files, tmp_path / "out.csv"),
        ("embed", run, *files, tmp_path / "out.npy"),
    ):
        assert "--trust-code" in command(*arguments, code=2).stderr
        command(*arguments, "--trust-code")


def test_trust_by_the_environment(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TRUST_CODE", "1")
    assert weft.load(run).tasks == ["sentiment", "paraphrase", "similarity"]


def test_training_parts_are_not_needed_to_answer(tiny: Path, tmp_path: Path) -> None:
    """Not even where their module is gone."""
    shutil.copy(SOURCE, tmp_path / "own_training.py")
    content = recipe_content(tiny)
    file = write_recipe(tmp_path, content | training_of(content, "own_training"))
    command("train", file, "-o", tmp_path / "run", "--trust-code")
    (tmp_path / "own_training.py").unlink()
    command("predict", tmp_path / "run", "sentiment", "a dull film")
    command("predict", tmp_path / "run", "sentiment", "a dull film", "--trust-code")


def test_a_changed_source_is_not_resumed(tiny: Path, tmp_path: Path) -> None:
    module = tmp_path / "own_changing.py"
    shutil.copy(SOURCE, module)
    file = write_recipe(tmp_path, content_of(tiny, "own_changing"))
    arguments = ("train", file, "-o", tmp_path / "run", "--trust-code")
    command(*arguments)
    module.write_text(module.read_text() + "\n# another line\n")
    told = command(*arguments, "--resume", code=2).stderr
    assert "the source file of own_changing:" in told
    assert "has changed since the run was started" in told


def test_a_model_goes_on_in_another_run(place: Path, run: Path, tmp_path: Path) -> None:
    done = command("train", place / "recipe.toml", "--body", run, "-o", tmp_path / "on", "--trust-code")
    assert "sentiment: starts with the head of" in done.stdout
    assert "was trained with another" not in done.stdout


def test_several_processes(place: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TRUST_CODE", "1")
    train_together(tmp_path, {"both": content_of(tiny, code=str(place))})
    assert json.loads((tmp_path / "both" / "environment.json").read_text())["processes"] == 2


def test_a_sweep_over_an_option(place: Path, tmp_path: Path) -> None:
    file = place / "sweep.toml"
    keys = '"tasks.sentiment.loss.gamma" = [0.5, 3.0]'
    file.write_text(
        'name = "s"\nbase = "recipe.toml"\nsampler = "grid"\nbudget = { steps = 3 }\n[search]\n' + keys,
        encoding="utf-8",
    )
    with pytest.raises(UserError, match="--trust-code"):
        run_sweep(load_sweep(str(file)), tmp_path / "sweep", Listening())
    found = run_sweep(load_sweep(str(file)), tmp_path / "sweep", Listening(), trust_code=True)
    assert found.best is not None
    file.write_text(file.read_text().replace("3.0", "-3.0"), encoding="utf-8")
    with pytest.raises(UserError, match="tasks.sentiment.loss.gamma: found -3.0"):
        run_sweep(load_sweep(str(file)), tmp_path / "other", Listening(), trust_code=True)


def test_a_study(place: Path, tmp_path: Path) -> None:
    file = place / "study.toml"
    file.write_text(
        'name = "s"\nabout = "x"\nbase = "recipe.toml"\nseeds = [1]\nbudget = { steps = 3 }\nbaseline = "mild"\n'
        '[arms.mild]\n[arms.sharp]\n"tasks.sentiment.loss.gamma" = 5.0\n',
        encoding="utf-8",
    )
    source = load_study(str(file))
    with pytest.raises(UserError, match="--trust-code"):
        plan_study(source, device="cpu")
    plan = plan_study(source, device="cpu", trust_code=True)
    assert str(place / "own_parts.py") in plan.study.data
    said: list[str] = []
    result = run_study(plan, tmp_path / "study", EXECUTORS["local"](1), said.append)
    assert not [line for line in said if "failed" in line]
    assert set(result.arms) == {"mild", "sharp"}


def test_exports(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--trust-code"):
        export(run, "transformers", tmp_path / "transformers")
    outcome = export(run, "transformers", tmp_path / "transformers", trust_code=True)
    assert 'head = { use = "own_parts:GatedConfig" } is code' in outcome.skipped["sentiment"]
    assert 'pooling = { use = "own_parts:SumConfig" } is code' in outcome.skipped["similarity"]
    assert "paraphrase" in outcome.written
    export(run, "onnx", tmp_path / "onnx", trust_code=True)
    model = weft.load(tmp_path / "onnx")  # a graph needs no code
    expected = weft.load(run, trust_code=True).predict("sentiment", "a dull film").score
    assert model.predict("sentiment", "a dull film").score == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("address", ["os:system", "own_side_effect:Head", "own_side_effect.inner:Head"])
def test_a_hostile_model_is_not_imported(run: Path, tmp_path: Path, address: str) -> None:
    model = tmp_path / "model"
    shutil.copytree(run / "model", model)
    (tmp_path / "own_side_effect.py").write_text("raise SystemExit('was imported')", encoding="utf-8")

    def poison(content: Any) -> None:
        content["recipe"]["code"] = str(tmp_path)
        content["recipe"]["tasks"]["sentiment"]["head"] = {"use": address, "command": "touch pwned"}

    reseal(model, poison)
    with pytest.raises(UserError, match=f"tasks.sentiment.head: found '{address}': code that weft imports only if"):
        weft.load(model)
    assert "own_side_effect" not in sys.modules


def test_a_part_that_builds_something_else(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "own_wrong.py").write_text(
        "from own_helper import Base\n\nclass Wrong(Base):\n    def build(self, labels, task, bounds): return 5\n",
        encoding="utf-8",
    )
    (tmp_path / "own_helper.py").write_text(
        "from typing import Literal\nfrom weft.losses.base import LossOptions\n\n"
        "class Base(LossOptions):\n    name: Literal['wrong'] = 'wrong'\n",
        encoding="utf-8",
    )
    content = recipe_content(tiny)
    content["tasks"]["sentiment"]["loss"] = {"use": "own_wrong:Wrong"}
    file = write_recipe(tmp_path, content)
    told = command("train", file, "-o", tmp_path / "run", "--trust-code", code=2).stderr
    assert "tasks.sentiment.loss: 'own_wrong:Wrong' built a int" in told
