"""Sweep files: what they mean and what is refused."""

from pathlib import Path

import pytest

from tests.tiny import recipe_content, write_recipe
from weft.foundation.config import parse
from weft.foundation.errors import UserError
from weft.foundation.shipped import shipped_texts
from weft.recipes.recipe import load_recipe
from weft.sweep.config import Prune, Range, Sweep, SweepBudget, check_points, load_sweep, recipe_at

DOCS = Path(__file__).parents[3] / "docs"
HEAD = 'name = "s"\nbase = "recipe.toml"\n'
SEARCH = '[search]\n"dropout" = [0.1, 0.2]\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tiny: Path, tmp_path: Path) -> Path:
    write_recipe(tmp_path, recipe_content(tiny))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + 'sampler = "grid"\n', "search: is missing"),
        (HEAD + 'sampler = "grd"\n' + SEARCH, "sampler: found 'grd'"),
        (HEAD + 'samplr = "grid"\n' + SEARCH, "samplr: there is no such key; did you mean 'sampler'?"),
        (HEAD + SEARCH, "requires `trials`"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = 0.1\n', r"search\.dropout: found 0.1, expected a list of values"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = []\n', "dropout"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = [0.1, 0.1]\n', "dropout contains 0.1 twice"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = { low = 0.1 }\n', "high: is missing"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = { low = 0.1, hihg = 1 }\n', "did you mean 'high'?"),
        (HEAD + 'trials = 3\n[search]\n"dropout" = { low = 0.3, high = 0.1 }\n', "`low` must be less than `high`"),
        (
            HEAD + 'trials = 3\n[search]\n"dropout" = { low = 0, high = 0.1, log = true }\n',
            "`log` requires `low` > 0",
        ),
        (HEAD + 'sampler = "grid"\n[search]\n"dropout" = { low = 0.0, high = 0.1 }\n', "a grid requires lists"),
        (HEAD + "trials = 2\nprune = true\nbudget = { steps = 3 }\n" + SEARCH, "`prune` cannot act"),
        ("name = [", "is not TOML"),
    ],
)
def test_a_bad_sweep_is_refused_with_a_reason(folder: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_sweep(str(write(folder, text)))


@pytest.mark.parametrize(
    ("search", "further", "message"),
    [
        ('"optimizer.lrr" = [1e-3]', "", "optimizer.lrr: there is no such key; did you mean 'lr'?"),
        ('"dropout" = [0.1, 2.0]', "", "dropout: found 2.0"),
        ('"dropout" = { low = 0.1, high = 1.5 }', "", "dropout: found 1.5"),
        ('"dropout.x" = [1]', "", "--set dropout.x=1: dropout is a single value"),
        (
            '"dropout" = [0.1]',
            'metric = "sentimnt.f1"',
            "metric: found 'sentimnt.f1', expected overall, or TASK.METRIC",
        ),
        ('"dropout" = [0.1]', 'metric = "sentiment.pearson"', "expected one of the metrics of sentiment: accuracy, f1"),
        ('"epochs" = [1]', "prune = true", "prune: the recipe has one epoch"),
    ],
)
def test_a_value_that_the_recipe_refuses_is_found_before_training(
    folder: Path, search: str, further: str, message: str
) -> None:
    sweep = load_sweep(str(write(folder, f"{HEAD}trials = 2\n{further}\n[search]\n{search}\n")))
    with pytest.raises(UserError, match=message):
        check_points(sweep, None)


def test_points_are_set_as_on_the_command_line(folder: Path) -> None:
    text = (
        f'{HEAD}sampler = "grid"\n[search]\n"tasks.*.batch_size" = [3, 5]\n"weighting" = ["mean", {{ name = "dwa" }}]\n'
    )
    sweep = load_sweep(str(write(folder, text)))
    assert sweep.planned == len(sweep.grid()) == 4
    recipe = recipe_at(sweep, sweep.grid()[1], None, "s-0001")
    settings = ["tasks.*.batch_size=3", 'weighting={ name = "dwa" }', "name=s-0001"]
    assert recipe == load_recipe(folder / "recipe.toml", settings=settings)


def test_a_metric_knows_its_direction() -> None:
    def sweep(metric: str) -> Sweep:
        return parse(Sweep, {"name": "s", "base": "x", "trials": 1, "metric": metric, "search": {"dropout": [0]}}, "s")

    assert sweep("similarity.mse").lower_is_better
    assert not sweep("similarity.pearson").lower_is_better
    assert not sweep("overall").lower_is_better


def test_unknown_names_are_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="report-0"):
        load_sweep("nosuch")
    with pytest.raises(UserError, match="there is no such file"):
        load_sweep(str(tmp_path / "no.toml"))


@pytest.mark.parametrize("name", shipped_texts("sweeps"))
def test_shipped_sweeps_search_keys_that_their_recipes_have(name: str, tmp_path: Path) -> None:
    for file in ("ids-sst", "quora", "sts"):
        for split in ("train", "dev", "test"):
            (tmp_path / f"{file}-{split}.csv").touch()
    sweep = load_sweep(name)
    check_points(sweep, tmp_path)
    assert f"`{name}`" in (DOCS / "sweeps.md").read_text(encoding="utf-8")


def test_the_grid_of_report_0() -> None:
    sweep = load_sweep("report-0")
    assert sweep.planned == 4 * 3 * 2 * 3 * 9
    assert sweep.model_copy(update={"trials": 20}).planned == 20


@pytest.mark.parametrize("config", [Sweep, Range, SweepBudget, Prune])
def test_every_key_is_explained(config: type) -> None:
    page = (DOCS / "sweeps.md").read_text(encoding="utf-8")
    for key, field in config.model_fields.items():  # type: ignore[attr-defined]
        assert key in page
        assert field.description, key
