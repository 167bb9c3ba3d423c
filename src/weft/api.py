"""Training from Python, in one call."""

from collections.abc import Sequence
from pathlib import Path

from weft import experiment
from weft.model import Model, load
from weft.recipe import Recipe, load_recipe
from weft.training.checkpoint import Progress
from weft.training.distributed import join
from weft.training.step import StepReport
from weft.training.trainer import Evaluation, Listener


class Quiet:
    """A listener that says nothing."""

    def started(self, progress: Progress, steps: int) -> None: ...
    def stepped(self, step: int, report: StepReport, seconds: float) -> None: ...
    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None: ...
    def noted(self, message: str) -> None: ...


def train(
    recipe: str | Path | Recipe,
    out: str | Path,
    *,
    data_dir: str | Path | None = None,
    body: str | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    listener: Listener | None = None,
) -> Model:
    """Train a recipe (a file, a shipped name or a Recipe) into the folder `out` and load the result.

    `settings` are overrides such as `["optimizer.lr=3e-5"]`; `steps` is a budget of optimizer steps. In a script that
    torchrun starts, all of its processes train one run together.
    """
    if not isinstance(recipe, Recipe):
        directory = Path(data_dir) if data_dir is not None else None
        recipe = load_recipe(recipe, settings=settings, body=body, seed=seed, data_dir=directory)
    elif settings or body is not None or seed is not None or data_dir is not None:
        raise TypeError("settings, body, seed and data_dir change a recipe that is loaded; a Recipe is taken as it is")
    with join(device) as processes:
        watcher = listener if listener and processes.leads else Quiet()
        experiment.train(recipe, Path(out), watcher, steps=steps, device=device, resume=resume, processes=processes)
    return load(out, device)
