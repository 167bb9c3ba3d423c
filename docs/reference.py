"""Writes the pages of docs/reference from the code: python docs/reference.py

Keys, types and defaults come from the config classes, commands from typer, the Python API from signatures and
docstrings. A test compares the committed pages with what this script gives, so they cannot drift.
"""

from pathlib import Path

from reference_commands import commands_page
from reference_keys import Keys
from reference_python import python_page

from weft.recipes.recipe import Recipe
from weft.study.format import Study
from weft.sweep.config import Sweep

FOLDER = Path(__file__).parent / "reference"


def recipe_page() -> str:
    return Keys(Recipe).page(
        "Recipe keys",
        "All keys of a recipe, with type, default and meaning. [The recipe](../recipe.md) explains how a recipe works. "
        'A variant without options can be written as its name: `loss = "mse"` is `loss = { name = "mse" }`.',
    )


def study_page() -> str:
    return Keys(Study).page(
        "Study keys", "All keys of a study file. [Studies](../studies.md) explains how a study works."
    )


def sweep_page() -> str:
    return Keys(Sweep).page(
        "Sweep keys", "All keys of a sweep file. [Sweeps](../sweeps.md) explains how a sweep works."
    )


PAGES = {
    "recipe.md": recipe_page,
    "study.md": study_page,
    "sweep.md": sweep_page,
    "commands.md": commands_page,
    "python.md": python_page,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, page in PAGES.items():
        (FOLDER / file).write_text(page(), encoding="utf-8")
