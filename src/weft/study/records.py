"""Records of study.json, which contains every figure of a study."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.foundation.content import Content
from weft.foundation.records import IF_ANY, JsonRecord
from weft.runs.records import RunEnvironment, TaskScores


@dataclass(frozen=True, kw_only=True)
class ClaimResult(JsonRecord):
    """A claim, its verdict and its statistics. A statistic is None if it cannot be estimated."""

    text: str
    number: int | None = field(default=None, metadata=IF_ANY)
    published_by: str = field(default="", metadata=IF_ANY)
    verdict: str
    """supported, refuted or undecided."""
    why: str
    better: str
    worse: str
    metric: str
    on: str
    margin: float
    seeds: tuple[int, ...]
    """Seeds that both arms have."""
    difference: float | None
    """`better` minus `worse`; larger favours the claim."""
    low: float | None
    high: float | None
    standard_error: float | None
    degrees_of_freedom: float | None
    p: float | None
    p_corrected: float | None
    """p-value after Holm's correction over all claims."""
    claims_asked: int
    smallest_difference: float | None
    """Minimum detectable difference, at a power of 80 %."""
    at_most_cost: float | None = field(default=None, metadata=IF_ANY)
    cost: str | None = field(default=None, metadata=IF_ANY)
    """Unit of cost for `at_most_cost`."""
    cost_ratios: tuple[float, ...]
    """Cost of `better` divided by the cost of `worse`, per seed."""


@dataclass(frozen=True, kw_only=True)
class MetricResult(JsonRecord):
    """One metric of an arm: mean over its seeds, 95 % interval, and the value of every seed."""

    mean: float | None
    low: float | None
    high: float | None
    seeds: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class CostResult(JsonRecord):
    """One kind of cost: mean over the seeds, and the value of every seed."""

    mean: float
    seeds: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ArmCosts(JsonRecord):
    """Cost of the runs of an arm; empty if none of them finished."""

    seconds: CostResult | None = field(default=None, metadata=IF_ANY)
    cpu_seconds: CostResult | None = field(default=None, metadata=IF_ANY)
    """CPU time over all threads. Older runs did not record it."""
    tokens: CostResult | None = field(default=None, metadata=IF_ANY)
    peak_memory: CostResult | None = field(default=None, metadata=IF_ANY)
    """In bytes."""


@dataclass(frozen=True, kw_only=True)
class PublishedFigures(JsonRecord):
    """Published scores of the recipe that an arm reproduces."""

    recipe: str
    dev: dict[str, float] = field(default_factory=dict, metadata=IF_ANY)
    test: dict[str, float] = field(default_factory=dict, metadata=IF_ANY)
    overall: float | None = field(default=None, metadata=IF_ANY)
    minutes: float | None = field(default=None, metadata=IF_ANY)
    best_epoch: int | None = field(default=None, metadata=IF_ANY)


@dataclass(frozen=True)
class RowsSeen(JsonRecord):
    """Train rows of a task that a run reads, counted over its plan with the recipe's seed."""

    of: int
    """Rows in the train set."""
    distinct: int
    """Rows that are read at least once."""
    drawn: int
    """Rows that are read, counting repetitions."""


@dataclass(frozen=True, kw_only=True)
class ArmResult(JsonRecord):
    """Scores, cost and settings of one arm."""

    changes: Content
    """Recipe key -> value."""
    unset: tuple[str, ...]
    tasks: tuple[str, ...]
    steps: int
    train_rows: dict[str, RowsSeen]
    seeds: tuple[int, ...]
    """Seeds of the finished runs."""
    metrics: dict[str, MetricResult]
    """`TASK.METRIC` or `overall` -> its scores."""
    train: dict[str, TaskScores]
    """Seed -> scores on train rows."""
    cost: ArmCosts
    published: PublishedFigures | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DifferenceResult(JsonRecord):
    """Score of an arm minus that of the baseline, for one metric."""

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
    """Share of logged steps on which the cosine similarity is below 0."""
    verdict: str
    """conflict, agree or undecided."""


@dataclass(frozen=True, kw_only=True)
class StudyResult(JsonRecord):
    """The content of study.json."""

    name: str
    about: str
    finished: bool
    seeds: tuple[int, ...]
    budget: dict[str, int]
    """Unit of the budget -> its amount."""
    baseline: str
    dev_rows: dict[str, int]
    set: Content = field(default_factory=dict, metadata=IF_ANY)
    """Changes that all arms share: recipe key -> value. Older files do not have them."""
    resamples: int
    paired_seeds: bool = field(default=False, metadata=IF_ANY)
    """Whether differences are between runs of the same seed; older versions took all seeds as independent."""
    claims: tuple[ClaimResult, ...]
    arms: dict[str, ArmResult]
    differences: tuple[DifferenceResult, ...]
    conflicts: Mapping[str, tuple[ConflictResult, ...]]
    """Arm -> pairs of tasks."""
    failures: dict[str, str]
    """ARM-SEED -> why the run failed."""
    caveats: tuple[str, ...]
    bodies: tuple[str, ...]
    reused: dict[str, str] = field(default_factory=dict, metadata=IF_ANY)
    """ARM-SEED -> STUDY/RUN of the study that trained this run."""
    environment: RunEnvironment

    @property
    def metrics(self) -> list[str]:
        """All metrics that any arm measures."""
        return list(dict.fromkeys(metric for arm in self.arms.values() for metric in arm.metrics))
