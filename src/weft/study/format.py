"""A study as a file: arms, seeds, a budget and claims."""

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
    """How much a run may train, by one of three measures. A run is scored once, at the end of its budget."""

    steps: int | None = Field(default=None, ge=1)
    """optimizer steps"""
    examples: int | None = Field(default=None, ge=1)
    """rows of all tasks together"""
    tokens: int | None = Field(default=None, ge=1)
    """tokens of all tasks together: the measure of compute"""

    @model_validator(mode="after")
    def _one(self) -> "StudyBudget":
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("a budget has one of `steps`, `examples` and `tokens`")
        return self

    def shared(self, share: float) -> "StudyBudget":
        """A part of it."""
        (key, amount), *_ = self.model_dump(exclude_none=True).items()
        return StudyBudget.model_validate({key: max(1, round(amount * share))})

    def __str__(self) -> str:
        (key, amount), *_ = self.model_dump(exclude_none=True).items()
        return f"{amount:,} {key}"


class Arm(Config):
    """A recipe with changes. In the file the changes stand beside these keys, each with its whole key in quotes."""

    recipe: str | Content | None = None
    """a recipe file, a shipped name or a whole recipe; the study's `base` unless said"""
    only: tuple[str, ...] | None = Field(default=None, min_length=1)
    """the tasks that are kept"""
    budget: StudyBudget | None = None
    """instead of the study's"""
    share: float = Field(default=1.0, gt=0)
    """so much of the budget"""
    published: str | None = None
    """the shipped recipe whose published figures stand beside this arm's"""
    unset: tuple[str, ...] = ()
    """keys of the recipe that this arm leaves out, such as "tasks.similarity.head": their defaults hold"""
    changes: Content = Field(default_factory=dict)

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
            raise ValueError(f"`unset` leaves out {both[0]}, which the arm sets; keep one of the two")
        return self

    @field_validator("published")
    @classmethod
    def _is_published(cls, name: str | None) -> str | None:
        if name is not None and (name not in library() or library()[name].published is None):
            raise ValueError(f"{name!r} is no shipped recipe with published figures; `weft recipes` lists them")
        return name

    @model_serializer
    def _as_written(self) -> Content:
        own = {
            "recipe": self.recipe,
            "only": None if self.only is None else list(self.only),
            "budget": None if self.budget is None else self.budget.model_dump(exclude_none=True),
            "share": None if self.share == 1 else self.share,
            "published": self.published,
            "unset": list(self.unset) or None,
        }
        return {key: value for key, value in own.items() if value is not None} | self.changes


def whole_keys(changes: Content) -> Content:
    """`optimizer.lr = 1e-4` without quotes is a table to TOML, which would replace all of `optimizer`."""
    for key, value in changes.items():
        if key in ("tasks", "optimizer", "log", "checkpoint") and isinstance(value, dict):
            inner = next(iter(value), "...")
            raise ValueError(f'would replace all of `{key}`; write it as "{key}.{inner}" = ... in quotes')
    return changes


class Claim(Config):
    """What is said of two arms. `better` is at least as good as `worse` minus the margin, and better than that."""

    text: str
    better: str
    worse: str
    metric: str
    """`TASK.METRIC` such as "similarity.pearson", or "overall" """
    on: Literal["dev", "gap"] = "dev"
    """the dev score, or how far the score on train rows is above it: the smaller gap is better"""
    margin: float = Field(default=0.0, ge=0)
    """`better` may be worse by so much: for claims that one thing matches another, or that a thing does not help"""
    at_most_cost: float | None = Field(default=None, gt=0)
    """besides, `better` must cost at most so much of what `worse` costs"""
    cost: Literal["seconds", "tokens"] = "seconds"
    """what `at_most_cost` counts"""

    @model_validator(mode="after")
    def _gap_of_a_task(self) -> "Claim":
        if self.on == "gap" and self.metric == "overall":
            raise ValueError('`on = "gap"` needs the metric of a task, such as sentiment.accuracy')
        return self


class Full(Config):
    """What `--full` puts in the place of the study's own."""

    seeds: tuple[int, ...] = Field(min_length=1)
    budget: StudyBudget
    set: Content = Field(default_factory=dict)


class Study(Config):
    name: str
    """how tables call it"""
    about: str = ""
    """what a reader should know before the tables"""
    base: str | None = None
    """the recipe that arms change: a file, relative to the study, or a shipped name"""
    seeds: tuple[int, ...] = Field(min_length=1)
    """every arm is trained once with each; at least two for an interval"""
    budget: StudyBudget
    """how much each run may train"""
    baseline: str
    """the arm that the others are held against"""
    set: Content = Field(default_factory=dict)
    """changes that all arms share"""
    full: Full | None = None
    """seeds, budget and shared changes of the large version, which `--full` runs"""
    arms: dict[str, Arm] = Field(min_length=2)
    claims: tuple[Claim, ...] = ()
    data: dict[str, str] = Field(default_factory=dict)
    """written by weft: which rows were used, as digests of their files; going on with others is refused"""

    @field_validator("seeds")
    @classmethod
    def _each_once(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ValueError("expected numbers from 0 on, each once")
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
                raise ValueError(f"claims.{number} holds the arm {claim.better!r} against itself")
        for place, name in places.items():
            if name not in self.arms:
                raise ValueError(f"{place}: found {name!r}, expected one of {', '.join(self.arms)}")
        return self

    def enlarged(self) -> "Study":
        """The large version."""
        if self.full is None:
            raise UserError(f"{self.name}: has no [full] table, so there is no --full version of it")
        return self.model_copy(
            update={"seeds": self.full.seeds, "budget": self.full.budget, "set": self.full.set, "full": None}
        )


@dataclass(frozen=True)
class FoundStudy:
    """A study as it was found."""

    study: Study
    folder: Path
    """what its paths are relative to"""


def load_study(source: str) -> FoundStudy:
    """A study from a file or by its shipped name."""
    file = load_toml(source, "study", lambda name: pick(name, shipped_texts("studies"), "study"))
    return FoundStudy(parse(Study, file.content, file.where), file.folder)


def parse_study(text: str, where: str) -> Study:
    return parse(Study, parse_toml(text, where), where)


def study_content(study: Study) -> Content:
    """Plain values, as JSON has them; what is not set is left out."""
    content: Content = study.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in content.items() if value not in ({}, [], "")}


def study_toml(study: Study) -> str:
    """A study as a file that loads to the same study."""
    return toml_text(study_content(study), sections="arms")
