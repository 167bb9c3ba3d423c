"""Comparison of several runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.evaluation.bootstrap import PairedDifference, difference
from weft.kinds.metrics import METRICS, title
from weft.report import learning
from weft.report.chart import Chart, Colour, Entry, EntryChart, Line, Plot
from weft.report.examples import comparable
from weft.report.run_charts import VIEWS, clock, place, x_label
from weft.report.scores import Score, Scores
from weft.report.sections import section_of


@dataclass(frozen=True)
class Gap:
    """Paired difference between a run and the first run, on the same dev rows."""

    run: str
    task: str
    metric: str
    difference: PairedDifference
    disagree: int | None
    """Rows on which the predictions of the two runs differ."""

    @property
    def title(self) -> str:
        return title(self.metric) if self.metric in METRICS else self.metric


@dataclass(frozen=True)
class Comparison:
    """The scores of several runs, and their paired differences from the first."""

    scores: list[Scores]

    @property
    def labels(self) -> list[str]:
        return [scores.run.label for scores in self.scores]

    @property
    def tasks(self) -> list[str]:
        """Tasks that all runs have, with the same primary metric."""
        first = self.scores[0]
        return [
            task
            for task, metric in first.primary.items()
            if all(scores.primary.get(task) == metric for scores in self.scores)
        ]

    @property
    def whole(self) -> bool:
        """Whether the same tasks count in all runs, so that their overall scores are comparable."""
        return all(scores.counted == self.scores[0].counted for scores in self.scores)

    def score(self, scores: Scores, task: str) -> Score:
        return next(score for score in scores.primaries if score.task == task)

    def mean(self, task: str | None) -> float | None:
        """Return the mean over the runs of a task's score, or of the overall score if `task` is None."""
        found = [self.score(s, task).value if task else s.overall.value for s in self.scores]
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if len(known) == len(found) else None

    def gaps(self) -> list[Gap]:
        """Return the paired differences of every other run from the first."""
        first, *others = self.scores
        found = []
        for other in others:
            shared = [task for task in self.tasks if self._comparable(task, first, other)]
            for task in shared:
                metric = first.primary[task]
                one, two = first.resampled[task][metric], other.resampled[task][metric]
                value = _minus(self.score(other, task).value, self.score(first, task).value)
                lower = METRICS[metric].lower_is_better
                pair = [scores.run.tasks[task] for scores in (first, other)]
                rows = int(section_of(pair[0].kind).disagreement(pair).sum())
                gap = difference(one, two, value, lower_is_better=lower)
                found.append(Gap(other.run.label, task, metric, gap, rows))
            if self.whole and len(shared) == len(self.tasks):
                value = _minus(other.overall.value, first.overall.value)
                gap = difference(first.resampled_overall, other.resampled_overall, value)
                found.append(Gap(other.run.label, "overall", "overall", gap, None))
        return found

    def uncomparable(self) -> list[str]:
        """Return the tasks that cannot be compared row by row, with the reason."""
        names = list(dict.fromkeys(task for scores in self.scores for task in scores.run.task_names))
        notes = []
        for task in names:
            if task not in self.tasks:
                notes.append(f"{task}: not in every run, or with different primary metrics")
            elif not all(self._comparable(task, self.scores[0], other) for other in self.scores[1:]):
                notes.append(
                    f"{task}: no paired difference, because the runs' dev rows, labels or positive classes differ"
                )
        return notes

    def _comparable(self, task: str, *scores: Scores) -> bool:
        tasks = [own.run.tasks[task] for own in scores if task in own.run.tasks]
        one_class = len({own.positive for own in tasks}) <= 1  # precision depends on which class is positive
        return len(tasks) == len(scores) and one_class and comparable(tasks)


def _minus(one: float | None, two: float | None) -> float:
    return float("nan") if one is None or two is None else one - two


def bar_charts(found: Comparison) -> list[Chart]:
    charts: list[Chart] = []
    for task in [*found.tasks, *(["overall"] if found.whole else [])]:
        own = [s.overall if task == "overall" else found.score(s, task) for s in found.scores]
        rows = [
            Entry(
                label,
                score.value,
                score.interval.low if score.interval else None,
                score.interval.high if score.interval else None,
                colour=Colour(i),
            )
            for i, (label, score) in enumerate(zip(found.labels, own, strict=True))
        ]
        metric = "overall" if task == "overall" else title(found.scores[0].primary[task])
        mean = found.mean(None if task == "overall" else task)
        heading = task if task == metric else f"{task}: {metric}"
        charts.append(EntryChart(f"{task}-bars", heading, metric, rows, bars=True, rule=mean, rule_label="mean"))
    return charts


def gap_charts(found: Comparison, gaps: Sequence[Gap]) -> list[Chart]:
    """Return one chart per run that is compared with the first."""
    charts: list[Chart] = []
    for i, label in enumerate(found.labels[1:], start=1):
        rows = [
            Entry(
                gap.task,
                gap.difference.value,
                gap.difference.interval.low if gap.difference.interval else None,
                gap.difference.interval.high if gap.difference.interval else None,
                colour=Colour(i),
            )
            for gap in gaps
            if gap.run == label
        ]
        if rows:
            heading = f"{label} vs. {found.labels[0]}"
            x = "difference (> 0: the first run is better)"
            charts.append(EntryChart(f"gap-{i}", heading, x, rows, rule=0.0))
    return charts


def curve_charts(found: Comparison) -> list[Chart]:
    """Return the dev scores and losses of all runs, one chart per metric."""
    unit = clock([scores.run for scores in found.scores])
    charts: list[Chart] = []
    for view in VIEWS:
        for name, heading, y_label, curves in _curves(found):
            lines = [
                Line(place(curve, view, unit), curve.values, label, Colour(i), dots=True)
                for i, (label, curve) in enumerate(zip(found.labels, curves, strict=True))
                if len(curve.steps)
            ]
            if max((len(line.x) for line in lines), default=0) > 1:
                charts.append(Plot(f"{name}-over-by-{view}", heading, x_label(view, unit), y_label, lines, group=view))
    return charts


def _curves(found: Comparison) -> Iterator[tuple[str, str, str, list[learning.Curve]]]:
    """Yield (name, title, y label, one curve per run) of every chart."""
    if found.whole:
        yield "overall", "overall", "dev overall", [learning.overall_curve(scores.run) for scores in found.scores]
    for task in found.tasks:
        metric = found.scores[0].primary[task]
        own = [learning.curves(scores.run, task, metric) for scores in found.scores]
        shown = title(metric)
        yield task, f"{task}: {shown}", f"dev {shown}", [curves.dev_score for curves in own]
        yield f"{task}-loss", f"{task}: loss", "dev loss", [curves.dev_loss for curves in own]
