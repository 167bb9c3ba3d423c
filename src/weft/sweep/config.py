"""The sweep file: the recipe, its search space and the search method."""

import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from weft.foundation.config import Config, parse
from weft.foundation.content import toml_value
from weft.foundation.errors import UserError
from weft.foundation.shipped import load_toml, pick, shipped_texts
from weft.kinds import KINDS
from weft.kinds.metrics import METRICS
from weft.recipes.recipe import Recipe, load_recipe

Point = Mapping[str, Any]
"""One value for every searched key."""


class Range(Config):
    """A range of numbers; integers if both ends are integers."""

    low: int | float
    """Minimum."""
    high: int | float
    """Maximum."""
    log: bool = False
    """Sample on a log scale."""
    step: int | float | None = Field(default=None, gt=0)
    """Sample only `low`, `low + step`, ... Defaults to all values in the range."""

    @model_validator(mode="after")
    def _ends(self) -> "Range":
        if not self.low < self.high:
            raise ValueError(f"`low` is {self.low} and `high` is {self.high}; `low` must be less than `high`")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("`log` requires `low` > 0 and no `step`")
        return self

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


def _form(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return "list"
    return "range" if isinstance(value, dict | Range) else None


Space = Annotated[
    Annotated[tuple[Any, ...], Tag("list"), Field(min_length=1)] | Annotated[Range, Tag("range")],
    Discriminator(
        _form,
        custom_error_type="space",
        custom_error_message="Expected a list of values, or a table such as { low = 1e-5, high = 1e-3, log = true }",
    ),
]


class SweepBudget(Config):
    """Training budget of a trial."""

    steps: int = Field(ge=1)
    """Optimizer steps of every trial, as in `weft train --budget steps=N`."""


class Prune(Config):
    """Median pruning: stop a trial whose best dev score so far is below the median of other trials at that epoch."""

    trials: int = Field(default=5, ge=1)
    """Number of trials that must finish before any trial is pruned."""
    epochs: int = Field(default=1, ge=1)
    """Number of epochs before a trial can be pruned."""


def _switch(value: Any) -> Any:
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


class Sweep(Config):
    """A base recipe, a search space and a sampler."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the sweep, and prefix of the names of its runs."""
    base: str
    """The recipe: a file, relative to the sweep, or a shipped name."""
    sampler: Literal["grid", "random", "tpe"] = "tpe"
    """Grid search, random search or TPE (tree-structured Parzen estimator, which uses the scores of earlier trials)."""
    trials: int | None = Field(default=None, ge=1)
    """Total number of trials. Required for random and tpe; defaults to all points of a grid."""
    metric: str = "overall"
    """Metric to optimize on dev, at the best epoch of a trial: overall, or TASK.METRIC such as similarity.pearson."""
    budget: SweepBudget | None = None
    """Training budget of every trial. Defaults to the recipe's number of epochs."""
    prune: Annotated[Prune | None, BeforeValidator(_switch)] = None
    """Prune trials that perform worse than the others: true, or { trials, epochs }."""
    seed: int = Field(default=11711, ge=0)
    """Seed of the search. Trials use the recipe's seed."""
    search: dict[str, Space] = Field(min_length=1)
    """Recipe keys as in --set, each with a list of values or a range."""

    @field_validator("search")
    @classmethod
    def _no_value_twice(cls, search: dict[str, Space]) -> dict[str, Space]:
        for key, space in search.items():
            if not isinstance(space, Range):
                texts = [toml_value(value) for value in space]
                twice = [text for text in texts if texts.count(text) > 1]
                if twice:
                    raise ValueError(f"{key} contains {twice[0]} twice")
        return search

    @model_validator(mode="after")
    def _fits_together(self) -> "Sweep":
        ranges = [key for key, space in self.search.items() if isinstance(space, Range)]
        if self.sampler == "grid" and ranges:
            raise ValueError(f"a grid requires lists, but search.{ranges[0]} is a range; list its values, or use tpe")
        if self.sampler != "grid" and self.trials is None:
            raise ValueError(f"the sampler {self.sampler!r} requires `trials`")
        if self.prune and self.budget:
            raise ValueError("with a `budget`, a trial is evaluated only at its end, so `prune` cannot act; remove one")
        return self

    @property
    def planned(self) -> int:
        """Total number of trials."""
        if self.sampler != "grid":
            return int(self.trials or 0)
        points = math.prod(len(space) for space in self.search.values() if not isinstance(space, Range))
        return min(points, self.trials or points)

    @property
    def lower_is_better(self) -> bool:
        return self.metric != "overall" and METRICS[self.metric.rpartition(".")[2]].lower_is_better

    def grid(self) -> list[Point]:
        """Return every combination of values; the last key varies fastest."""
        lists = [space for space in self.search.values() if not isinstance(space, Range)]
        return [dict(zip(self.search, values, strict=True)) for values in product(*lists)]


def load_sweep(source: str) -> Sweep:
    """Load a sweep from a file or by its shipped name, with an absolute path to its base."""
    file = load_toml(source, "sweep", lambda name: pick(name, shipped_texts("sweeps"), "sweep"))
    sweep = parse(Sweep, file.content, file.where)
    beside = file.folder / sweep.base
    if Path(source).is_file() and beside.is_file():
        return sweep.model_copy(update={"base": str(beside.resolve())})
    return sweep


def recipe_at(sweep: Sweep, point: Point, data_dir: Path | None, name: str | None = None) -> Recipe:
    """Return the base recipe with the values of a point, as `--set` applies them."""
    values = {**point, "name": name} if name else point
    settings = [f"{key}={toml_value(value)}" for key, value in values.items()]
    return load_recipe(sweep.base, settings=settings, data_dir=data_dir)


def check_points(sweep: Sweep, data_dir: Path | None, trust_code: bool = False) -> Recipe:
    """Reject values that the recipe rejects, before training starts. Returns the recipe at the first point."""

    def checked(point: Point) -> Recipe:
        recipe = recipe_at(sweep, point, data_dir)
        recipe.with_code(trust_code, sweep.base)
        return recipe

    ends = {key: (space.low, space.high) if isinstance(space, Range) else space for key, space in sweep.search.items()}
    first = {key: values[0] for key, values in ends.items()}
    recipe = checked(first)
    for key, values in ends.items():
        for value in values[1:]:
            checked({**first, key: value})
    _check_metric(sweep, recipe)
    if sweep.prune and recipe.epochs == 1:
        raise UserError("prune: the recipe has one epoch, so trials are evaluated only at their end; remove `prune`")
    return recipe


def _check_metric(sweep: Sweep, recipe: Recipe) -> None:
    if sweep.metric == "overall":
        return
    task, _, metric = sweep.metric.rpartition(".")
    if task not in recipe.tasks:
        expected = f"overall, or TASK.METRIC with TASK one of {', '.join(recipe.tasks)}"
        raise UserError(f"metric: found {sweep.metric!r}, expected {expected}")
    known = recipe.tasks[task].metrics or KINDS[recipe.tasks[task].kind].default_metrics
    if metric not in known:
        raise UserError(f"metric: found {metric!r}, expected one of the metrics of {task}: {', '.join(known)}")
