"""The study file: arms, seeds, a budget and claims."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from weft.foundation.config import Config, check_names, parse
from weft.foundation.content import Content, parse_toml, toml_text
from weft.foundation.errors import UserError
from weft.foundation.shipped import load_toml, pick, shipped_texts
from weft.recipes.library import library


class StudyBudget(Config):
    """Training budget of a run, in one of three units. A run is evaluated once, at the end of its budget."""

    steps: int | None = Field(default=None, ge=1)
    """Optimizer steps."""
    examples: int | None = Field(default=None, ge=1)
    """Rows, summed over all tasks."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens, summed over all tasks: the unit for comparisons at equal compute."""

    @model_validator(mode="after")
    def _one(self) -> "StudyBudget":
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("expected exactly one of `steps`, `examples` and `tokens`")
        return self

    def shared(self, share: float) -> "StudyBudget":
        """Return the budget multiplied by `share`."""
        (key, amount), *_ = self.model_dump(exclude_none=True).items()
        return StudyBudget.model_validate({key: max(1, round(amount * share))})

    def __str__(self) -> str:
        (key, amount), *_ = self.model_dump(exclude_none=True).items()
        return f"{amount:,} {key}"


class Arm(Config):
    """A recipe with changes. In the file, changes are written next to these keys, each with its whole key in quotes."""

    recipe: str | Content | None = None
    """A recipe file, a shipped name or a whole recipe. Defaults to the study's `base`."""
    only: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Train only these tasks. Defaults to all tasks of the recipe."""
    budget: StudyBudget | None = None
    """Budget of this arm. Defaults to the study's `budget`."""
    share: float = Field(default=1.0, gt=0)
    """Factor by which the budget is multiplied."""
    published: str | None = None
    """A shipped recipe whose published scores are shown next to this arm's."""
    teachers: tuple[str, ...] = ()
    """Other arms of the study whose runs with the same seed teach this arm: the value of `distill.teachers`. They are
    trained first. `"distill.weight"` and the other keys of `distill` are written next to it."""
    unset: tuple[str, ...] = ()
    """Recipe keys to reset to their defaults, such as "tasks.similarity.head"."""
    changes: Content = Field(default_factory=dict)
    """Recipe key -> value. In a file, usually written next to the other keys of the arm."""

    @model_validator(mode="before")
    @classmethod
    def _gather_changes(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        own = {key: value for key, value in content.items() if key in cls.model_fields}
        return own | {"changes": own.get("changes", {}) | {k: v for k, v in content.items() if k not in own}}

    @field_validator("changes")
    @classmethod
    def _whole_keys(cls, changes: Content) -> Content:
        return whole_keys(changes)

    @model_validator(mode="after")
    def _unset_or_set(self) -> "Arm":
        both = [key for key in self.unset if key in self.changes]
        if both:
            raise ValueError(f"`unset` removes {both[0]}, but the arm also sets it; remove one of the two")
        if self.teachers and "distill.teachers" in self.changes:
            raise ValueError("`teachers` and `distill.teachers` both name the teachers; remove one of the two")
        return self

    @field_validator("published")
    @classmethod
    def _is_published(cls, name: str | None) -> str | None:
        if name is not None and (name not in library() or library()[name].published is None):
            raise ValueError(f"{name!r} is not a shipped recipe with published scores; see `weft recipes`")
        return name

    @model_serializer
    def _as_written(self) -> Content:
        own = {
            "recipe": self.recipe,
            "only": None if self.only is None else list(self.only),
            "budget": None if self.budget is None else self.budget.model_dump(exclude_none=True),
            "share": None if self.share == 1 else self.share,
            "published": self.published,
            "teachers": list(self.teachers) or None,
            "unset": list(self.unset) or None,
        }
        return {key: value for key, value in own.items() if value is not None} | self.changes


def whole_keys(changes: Content) -> Content:
    """Reject keys without quotes: TOML reads `optimizer.lr = 1e-4` as a table that replaces all of `optimizer`."""
    for key, value in changes.items():
        if key in ("tasks", "optimizer", "log", "checkpoint") and isinstance(value, dict):
            inner = next(iter(value), "...")
            raise ValueError(f'would replace all of `{key}`; write it as "{key}.{inner}" = ... in quotes')
    return changes


class Claim(Config):
    """A hypothesis about two arms: the score of `better` is above that of `worse` minus `margin`."""

    text: str
    """The claim in words, as tables show it."""
    better: str
    """Arm that is claimed to be better, or not worse by more than `margin`."""
    worse: str
    """Arm that it is compared with."""
    metric: str
    """`TASK.METRIC` such as "similarity.pearson", or "overall"."""
    on: Literal["dev", "gap"] = "dev"
    """Compare the dev score, or the generalization gap (train score minus dev score; smaller is better)."""
    margin: float = Field(default=0.0, ge=0)
    """Non-inferiority margin: for claims that one arm matches another, or that a method does not help."""
    at_most_cost: float | None = Field(default=None, gt=0)
    """Upper bound on the cost of `better` divided by the cost of `worse`. Defaults to no bound."""
    cost: Literal["seconds", "cpu_seconds", "tokens"] = "seconds"
    """Unit of cost for `at_most_cost`. CPU seconds depend less on what else a machine does, but leave out a GPU."""
    number: int | None = Field(default=None, ge=1)
    """Number of the claim in a list that several studies test, such as the thirteen claims of the five reports."""
    published_by: str = ""
    """Who published the claim, as tables show it. Defaults to nobody."""

    @model_validator(mode="after")
    def _gap_of_a_task(self) -> "Claim":
        if self.on == "gap" and self.metric == "overall":
            raise ValueError('`on = "gap"` needs the metric of a task, such as sentiment.accuracy')
        return self


class Full(Config):
    """Values that replace the study's with `--full`."""

    seeds: tuple[int, ...] = Field(min_length=1)
    """Seeds of every arm."""
    budget: StudyBudget
    """Training budget of each run."""
    set: Content = Field(default_factory=dict)
    """Changes that all arms share; they replace the study's `set`."""


class Study(Config):
    """Arms that are trained under equal conditions, and claims about them."""

    name: str
    """Name of the study in tables."""
    about: str = ""
    """Description, shown above the tables."""
    base: str | None = None
    """The recipe that arms change: a file, relative to the study, or a shipped name."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """Every arm is trained once per seed. Intervals need at least two seeds."""
    budget: StudyBudget
    """Training budget of each run."""
    baseline: str
    """The arm that the others are compared with."""
    set: Content = Field(default_factory=dict)
    """Changes that all arms share."""
    full: Full | None = None
    """Seeds, budget and shared changes of the large version, which `--full` runs."""
    arms: dict[str, Arm] = Field(min_length=2)
    """The recipes to compare, by name."""
    claims: tuple[Claim, ...] = ()
    """Hypotheses to test."""
    data: dict[str, str] = Field(default_factory=dict)
    """Written by weft: SHA-256 digests of the data and code files. Resuming with different files fails."""
    bodies: dict[str, str] = Field(default_factory=dict)
    """Written by weft: SHA-256 digests of the bodies. Resuming with different ones fails."""

    @field_validator("seeds")
    @classmethod
    def _each_once(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("expected distinct integers >= 0")
        return seeds

    @field_validator("set")
    @classmethod
    def _whole_keys(cls, changes: Content) -> Content:
        return whole_keys(changes)

    @model_validator(mode="after")
    def _names(self) -> "Study":
        check_names([self.name], "study name")
        check_names(self.arms, "arm name")
        for name, arm in self.arms.items():
            if arm.recipe is None and self.base is None:
                raise ValueError(f"arms.{name} has no `recipe`, and the study has no `base`")
        places = {"baseline": self.baseline}
        for number, claim in enumerate(self.claims):
            places |= {f"claims.{number}.better": claim.better, f"claims.{number}.worse": claim.worse}
            if claim.better == claim.worse:
                raise ValueError(f"claims.{number} compares the arm {claim.better!r} with itself")
        places |= {f"arms.{name}.teachers: {t}": t for name, arm in self.arms.items() for t in arm.teachers}
        for place, name in places.items():
            if name not in self.arms:
                raise ValueError(f"{place}: found {name!r}, expected one of {', '.join(self.arms)}")
        self.teaching_order()
        return self

    def teaching_order(self) -> list[list[str]]:
        """Return the arms in groups: the teachers of an arm are in the groups before its own."""
        groups: list[list[str]] = []
        waiting = dict(self.arms)
        while waiting:
            ready = [name for name, arm in waiting.items() if not set(arm.teachers) & set(waiting)]
            if not ready:
                raise ValueError(f"arms.{next(iter(waiting))}.teachers: {', '.join(waiting)} wait for each other")
            groups.append(ready)
            waiting = {name: arm for name, arm in waiting.items() if name not in ready}
        return groups

    def enlarged(self) -> "Study":
        """Return the large version of the study, which `--full` runs."""
        if self.full is None:
            raise UserError(f"{self.name}: --full needs a [full] table in the study, and there is none")
        return self.model_copy(
            update={"seeds": self.full.seeds, "budget": self.full.budget, "set": self.full.set, "full": None}
        )


@dataclass(frozen=True)
class FoundStudy:
    """A study and the folder that its paths are relative to."""

    study: Study
    folder: Path
    """Folder that relative paths in the study start from."""


def load_study(source: str) -> FoundStudy:
    """Load a study from a file or by its shipped name."""
    file = load_toml(source, "study", lambda name: pick(name, shipped_texts("studies"), "study"))
    return FoundStudy(parse(Study, file.content, file.where), file.folder)


def parse_study(text: str, where: str) -> Study:
    return parse(Study, parse_toml(text, where), where)


def study_content(study: Study) -> Content:
    """Return the study as plain JSON values, without unset keys."""
    content: Content = study.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in content.items() if value not in ({}, [], "")}


def study_toml(study: Study) -> str:
    """Return TOML text that loads to the same study."""
    return toml_text(study_content(study), sections="arms")
