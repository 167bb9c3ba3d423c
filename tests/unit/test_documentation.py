"""The recipe page names every key that a recipe may have."""

import runpy
from pathlib import Path

import pytest

from tests.contracts.registry import variants
from tests.contracts.test_registries import REGISTRIES
from weft.bodies.registry import FAMILIES
from weft.data.config import PRESETS, DataConfig
from weft.evaluation.metrics import METRICS
from weft.recipes.recipe import Recipe
from weft.tasks.config import TaskConfig
from weft.training.checkpoint import CheckpointConfig
from weft.training.optimizer import OptimizerConfig

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("readings.md", "heads.md", "losses.md", "regularizers.md", "schedules.md", "combining.md", "report.md")


@pytest.mark.parametrize("config", [Recipe, TaskConfig, OptimizerConfig, CheckpointConfig])
def test_every_key_is_on_the_recipe_page(config: type) -> None:
    page = (DOCS / "recipe.md").read_text(encoding="utf-8")
    tables = {"tasks", "optimizer", "checkpoint", "log"}
    missing = [key for key in config.model_fields if f"`{key}`" not in page and key not in tables]  # type: ignore[attr-defined]
    assert missing == []


def test_every_variant_is_on_a_page() -> None:
    page = "".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    names = [name for registry in REGISTRIES.values() for name in variants(registry)]
    assert [name for name in names if f"`{name}`" not in page and f'"{name}"' not in page] == []


def test_the_data_page_names_every_key_preset_and_metric() -> None:
    page = (DOCS / "data.md").read_text(encoding="utf-8")
    assert [key for key in DataConfig.model_fields if f"`{key}`" not in page and key != "preset"] == []
    assert [name for name in PRESETS if f"`{name}`" not in page] == []
    assert [name for name in METRICS if name not in page] == []


def test_every_family_is_on_the_page_of_bodies() -> None:
    page = (DOCS / "bodies.md").read_text(encoding="utf-8")
    assert [name for name in FAMILIES if f"| `{name}` |" not in page] == []


def test_every_key_has_a_help_text() -> None:
    named = {"tasks", "schedule", "weighting", "surgery", "optimizer", "checkpoint", "log"}
    for config in (Recipe, TaskConfig, DataConfig, OptimizerConfig, CheckpointConfig):
        for key, field in config.model_fields.items():
            assert field.description or key in named, f"{config.__name__}.{key}"


def test_the_page_of_the_reports_is_written_from_the_recipes() -> None:
    made = runpy.run_path(str(DOCS / "reports.py"))["page"]()
    assert (DOCS / "reports.md").read_text(encoding="utf-8") == made, "run `make docs`"
