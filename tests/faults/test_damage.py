"""Bits that flip and files that are cut off: refused or recovered from, never silently other tensors."""

import random
import shutil
from pathlib import Path

import pytest
import torch

import weft
from tests.tiny import recipe_content
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.recipes.recipe import Recipe, parse_recipe
from weft.training.checkpoint import Checkpoints

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def recipe(tiny: Path) -> Recipe:
    return parse_recipe(recipe_content(tiny, checkpoint={"every_steps": 2}), "damage")


@pytest.fixture(scope="module")
def run(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("damage") / "run"
    weft.train(recipe, out)
    return out


def damage(path: Path, draw: random.Random) -> None:
    """One flipped bit anywhere in a file, in its header half of the time, or the end cut off."""
    content = bytearray(path.read_bytes())
    kind = draw.choice(["flip", "flip", "header", "cut"])
    if kind == "cut":
        path.write_bytes(content[: draw.randrange(len(content))])
        return
    place = draw.randrange(min(len(content), 64 if kind == "header" else len(content)))
    content[place] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def tensors_of(model: weft.Model) -> dict[str, torch.Tensor]:
    return dict(model.network.named_parameters())


def equal(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("part", range(5))
def test_a_damaged_model_is_refused(run: Path, tmp_path: Path, part: int) -> None:
    """Twenty times five; files that decide nothing, such as the model card, may be damaged."""
    sound = weft.load(run)
    text = ["a warm film the cat sees"]
    answer = sound.predict("sentiment", text)
    files = sorted(path.name for path in (run / "model").iterdir())
    draw = random.Random(part)
    refused = 0
    for i in range(20):
        shutil.copytree(run / "model", tmp_path / str(i))
        name = files[(20 * part + i) % len(files)]
        damage(tmp_path / str(i) / name, draw)
        try:
            loaded = weft.load(tmp_path / str(i))
        except UserError as error:
            assert str(tmp_path / str(i)) in str(error)
            refused += 1
        else:
            assert equal(tensors_of(loaded), tensors_of(sound)), name
            assert loaded.predict("sentiment", text) == answer, name
    assert refused >= 10


@pytest.mark.parametrize("part", range(5))
def test_a_damaged_checkpoint_is_passed_over(run: Path, recipe: Recipe, tmp_path: Path, part: int) -> None:
    """Twenty times five: the checkpoint before it is used, whole, and it is said."""
    made = assemble(recipe)
    draw = random.Random(100 + part)
    newest, older = sorted((run / "checkpoints").iterdir(), reverse=True)
    for i in range(20):
        folder = tmp_path / str(i)
        shutil.copytree(run / "checkpoints", folder)
        files = sorted(path.name for path in newest.iterdir())
        name = files[(20 * part + i) % len(files)]
        damage(folder / newest.name / name, draw)
        checkpoints = Checkpoints(
            folder,
            torch.nn.ModuleDict({"network": made.network, "weighting": made.step.weighting}),
            made.step.optimizer,
            {},
        )
        progress, warnings = checkpoints.load_latest()
        assert progress is not None
        assert f"step-{progress.step:06d}" == older.name, name
        assert len(warnings) == 1
        assert str(folder / newest.name) in warnings[0]


def test_no_sound_checkpoint_is_no_fresh_start(run: Path, recipe: Recipe, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("*/weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="no intact checkpoint is left; to start from the beginning, delete"):
        weft.train(recipe, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_log_that_lost_lines_is_not_filled_with_zeros(run: Path, recipe: Recipe, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="the log is damaged"):
        weft.train(recipe, tmp_path / "run", resume=True)


def test_a_changed_recipe_is_named(run: Path, tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    other = parse_recipe(recipe_content(tiny, checkpoint={"every_steps": 2}, dropout=0.4), "damage")
    with pytest.raises(UserError, match=r"another recipe \(dropout: was 0.1, is now 0.4\)"):
        weft.train(other, tmp_path / "run", resume=True)
