"""Section for tasks with pairs of texts that match."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from weft.kinds.ranking import NEAREST, RANK, SIMILARITY, Relevant, recall_at
from weft.report.chart import Bars, Chart, Colour, Line, Plot
from weft.report.sections.base import MistakeCase, Section, Which
from weft.report.task_charts import Labelled
from weft.runs.reader import TaskRun

DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of candidates for which the page shows recall."""
FEW = 10
"""A match of a lower rank is found late."""
BINS = 20


@dataclass(frozen=True)
class MatchFindings:
    """Everything that a report shows about matches."""

    anchors: int
    """Number of distinct first texts."""
    candidates: int
    """Number of distinct second texts."""
    median_rank: float
    recalls: list[tuple[int, float]]
    """(k, recall@k) for every depth up to the number of candidates."""


class MatchesSection(Section):
    template = "matches.html"

    def find(self, task: TaskRun) -> MatchFindings:
        found = Relevant(task.truth)
        candidates = len(np.unique(task.targets[:, 1]))
        return MatchFindings(
            anchors=len(found.counts),
            candidates=candidates,
            median_rank=float(np.median(task.predictions[:, RANK])),
            recalls=[(k, recall_at(k).compute(task.truth, task.predictions)) for k in DEPTHS if k <= candidates],
        )

    def charts(self, task: TaskRun, found: MatchFindings) -> list[Chart]:
        depths = np.log10([k for k, _ in found.recalls])
        edges = np.linspace(0.0, max(np.log10(found.candidates), 0.1), BINS + 1)
        ranks, _ = np.histogram(np.log10(task.predictions[:, RANK]), edges)
        cosines = np.linspace(-1.0, 1.0, 2 * BINS + 1)
        pairs, _ = np.histogram(task.predictions[:, SIMILARITY], cosines)
        random = np.array([k / found.candidates for k, _ in found.recalls])
        return [
            Plot(
                f"{task.name}-recall",
                "Recall by number of candidates",
                "candidates k, log10",
                "recall@k",
                [
                    Line(depths, np.array([value for _, value in found.recalls]), "model", Colour(0), dots=True),
                    Line(depths, random, "random", Colour(6), dashed=True),
                ],
                y_range=(0.0, 1.02),
            ),
            Plot(
                f"{task.name}-ranks",
                "Rank of the match",
                "rank, log10 (0 is the nearest)",
                "share of rows",
                [Bars(edges, ranks / len(task.targets), "", Colour(0))],
            ),
            Plot(
                f"{task.name}-similarity",
                "Cosine similarity of matches",
                "cosine similarity",
                "share of rows",
                [Bars(cosines, pairs / len(task.targets), "", Colour(0))],
            ),
        ]

    def labelled(self, task: TaskRun) -> list[Labelled]:
        """Group rows by the rank of the match."""
        ranks = task.predictions[:, RANK]
        return [
            ("nearest", Colour(0), ranks <= 1),
            (f"rank 2 to {FEW}", Colour(4), (ranks > 1) & (ranks <= FEW)),
            (f"below rank {FEW}", Colour(1), ranks > FEW),
        ]

    def text(self, task: TaskRun) -> Text:
        found = self.find(task)
        recalls = ", ".join(f"recall@{k} {value:.3f}" for k, value in found.recalls if k in (1, 10, 100))
        return Text(f"{found.anchors:,} first texts, {found.candidates:,} candidates: {recalls}")

    def errors(self, task: TaskRun) -> NDArray[np.float64]:
        """Return 1 - 1 / rank."""
        return np.asarray(1 - 1 / task.predictions[:, RANK])

    def is_wrong(self, task: TaskRun) -> Which:
        """Whether a candidate that is no match ranks before the match."""
        _, anchor_of = np.unique(task.targets[:, 0], return_inverse=True)
        return np.asarray(task.predictions[:, RANK] > Relevant(task.truth).counts[anchor_of])

    def cases(self, task: TaskRun) -> list[MistakeCase]:
        ranks, wrong = task.predictions[:, RANK], self.is_wrong(task)
        return [
            MistakeCase(f"Match below rank {FEW}", wrong & (ranks > FEW), ranks),
            MistakeCase(f"Match among the {FEW} nearest, but not first", wrong & (ranks <= FEW), ranks),
        ]

    def doubtful(self, task: TaskRun) -> Which:
        """Find pairs that are probably no matches: far apart, while the nearest candidate ranks first for most rows."""
        similarity = task.predictions[:, SIMILARITY]
        low = np.quantile(similarity, 0.01)
        return np.asarray(self.is_wrong(task) & (similarity <= low))

    def remark(self, task: TaskRun, row: int) -> str:
        nearest = int(task.predictions[row, NEAREST])
        return f"nearest: {task.texts[nearest][1]}"

    def disagreement(self, tasks: Sequence[TaskRun]) -> Which:
        first = np.stack([self.is_wrong(task) for task in tasks])
        return np.asarray(first.any(axis=0) & ~first.all(axis=0))


SECTION = MatchesSection()
