"""What is in study.json: every figure of a study."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.foundation.content import Content
from weft.foundation.records import IF_ANY, JsonRecord
from weft.runs.records import RunEnvironment, TaskScores


@dataclass(frozen=True, kw_only=True)
class ClaimResult(JsonRecord):
    """A claim, its verdict, and the figures behind it. A figure is None where nothing is known."""

    text: str
    verdict: str
    """supported, refuted or undecided"""
    why: str
    better: str
    worse: str
    metric: str
    on: str
    margin: float
    seeds: tuple[int, ...]
    """those that both arms have"""
    difference: float | None
    """`better` minus `worse`; more is better for the claim"""
    low: float | None
    high: float | None
    standard_error: float | None
    degrees_of_freedom: float | None
    p: float | None
    p_corrected: float | None
    """by Holm's rule, for all claims at once"""
    claims_asked: int
    smallest_difference: float | None
    """minimum detectable difference"""
    at_most_cost: float | None = field(default=None, metadata=IF_ANY)
    cost: str | None = field(default=None, metadata=IF_ANY)
    """what `at_most_cost` counts"""
    cost_ratios: tuple[float, ...]
    """cost of `better` over that of `worse`, seed by seed"""


@dataclass(frozen=True, kw_only=True)
class MetricResult(JsonRecord):
    """One metric of an arm: mean over its seeds, 95 % interval, and every seed's value."""

    mean: float | None
    low: float | None
    high: float | None
    seeds: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class CostResult(JsonRecord):
    mean: float
    seeds: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ArmCosts(JsonRecord):
    """What the runs of an arm cost; empty for an arm of which no run came to its end."""

    seconds: CostResult | None = field(default=None, metadata=IF_ANY)
    tokens: CostResult | None = field(default=None, metadata=IF_ANY)
    peak_memory: CostResult | None = field(default=None, metadata=IF_ANY)
    """bytes"""


@dataclass(frozen=True, kw_only=True)
class PublishedFigures(JsonRecord):
    """What a report printed for the recipe that an arm repeats."""

    recipe: str
    dev: dict[str, float] = field(default_factory=dict, metadata=IF_ANY)
    test: dict[str, float] = field(default_factory=dict, metadata=IF_ANY)
    overall: float | None = field(default=None, metadata=IF_ANY)
    minutes: float | None = field(default=None, metadata=IF_ANY)
    best_epoch: int | None = field(default=None, metadata=IF_ANY)


@dataclass(frozen=True)
class RowsSeen(JsonRecord):
    """The train rows of a task that a run sees, counted over its plan with the recipe's own seed."""

    of: int
    """rows that there are"""
    distinct: int
    """rows that are seen at least once"""
    drawn: int
    """rows that are seen, each counted as often as it is"""


@dataclass(frozen=True, kw_only=True)
class ArmResult(JsonRecord):
    changes: Content
    """recipe key -> value"""
    unset: tuple[str, ...]
    tasks: tuple[str, ...]
    steps: int
    train_rows: dict[str, RowsSeen]
    seeds: tuple[int, ...]
    """of the runs that came to their end"""
    metrics: dict[str, MetricResult]
    """`TASK.METRIC` or `overall` -> its figures"""
    train: dict[str, TaskScores]
    """seed -> scores on train rows"""
    cost: ArmCosts
    published: PublishedFigures | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DifferenceResult(JsonRecord):
    """An arm minus the baseline, by one metric."""

    arm: str
    metric: str
    difference: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    degrees_of_freedom: float | None
    p: float | None


@dataclass(frozen=True, kw_only=True)
class ConflictResult(JsonRecord):
    """Cosine similarity between the gradients of two tasks, over the seeds of an arm."""

    tasks: tuple[str, ...]
    cosine: float
    low: float | None
    high: float | None
    opposed: float
    """share of the logged steps on which it was below 0"""
    verdict: str
    """conflict, agree or undecided"""


@dataclass(frozen=True, kw_only=True)
class StudyResult(JsonRecord):
    """All of study.json."""

    name: str
    about: str
    finished: bool
    seeds: tuple[int, ...]
    budget: dict[str, int]
    """the one measure of the budget -> its amount"""
    baseline: str
    dev_rows: dict[str, int]
    resamples: int
    claims: tuple[ClaimResult, ...]
    arms: dict[str, ArmResult]
    differences: tuple[DifferenceResult, ...]
    conflicts: Mapping[str, tuple[ConflictResult, ...]]
    """arm -> pairs of tasks"""
    failures: dict[str, str]
    """ARM-SEED -> why it did not come to its end"""
    caveats: tuple[str, ...]
    bodies: tuple[str, ...]
    environment: RunEnvironment

    @property
    def metrics(self) -> list[str]:
        """all that any arm measures"""
        return list(dict.fromkeys(metric for arm in self.arms.values() for metric in arm.metrics))
