"""weft fine-tunes one encoder on many sentence tasks at once.

>>> import weft
>>> weft.train("multitask", out="runs/first", data_dir="data")  # doctest: +SKIP
>>> weft.load("runs/first").predict("sentiment", ["A quiet triumph."])  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.api import embed_file, predict_file, train
    from weft.evaluation.scoring import Evaluation
    from weft.foundation.errors import Interrupted, RunError, UserError
    from weft.inference.model import Model, load
    from weft.inference.prediction import Prediction
    from weft.recipes.recipe import Recipe, load_recipe
    from weft.runs.reader import Run, open_run
    from weft.study.reader import StudyFolder, open_study

    __version__: str

_HOMES = {
    "train": "weft.api",
    "predict_file": "weft.api",
    "embed_file": "weft.api",
    "mine_file": "weft.api",
    "load": "weft.inference.model",
    "Model": "weft.inference.model",
    "Prediction": "weft.inference.prediction",
    "Evaluation": "weft.evaluation.scoring",
    "Run": "weft.runs.reader",
    "open_run": "weft.runs.reader",
    "StudyFolder": "weft.study.reader",
    "open_study": "weft.study.reader",
    "Recipe": "weft.recipes.recipe",
    "load_recipe": "weft.recipes.recipe",
    "UserError": "weft.foundation.errors",
    "RunError": "weft.foundation.errors",
    "Interrupted": "weft.foundation.errors",
}
__all__ = [
    "Evaluation",
    "Interrupted",
    "Model",
    "Prediction",
    "Recipe",
    "Run",
    "RunError",
    "StudyFolder",
    "UserError",
    "__version__",
    "embed_file",
    "load",
    "load_recipe",
    "mine_file",
    "open_run",
    "open_study",
    "predict_file",
    "train",
]


def __dir__() -> list[str]:
    """What users import; names that only weft itself needs are left out."""
    return [*__all__, *(name for name in globals() if name.startswith("__") and name not in __all__)]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: `weft --help` should not wait for torch."""
    if name == "__version__":
        from importlib.metadata import version

        return version("weft")
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
