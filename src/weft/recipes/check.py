"""Checks a run before it starts: rows, labels, plan, time and memory."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import nn

from weft.bodies.linear import multiply
from weft.data.dataset import Dataset
from weft.data.remarks import WARNING
from weft.data.sources import find_sources
from weft.foundation.values import Window
from weft.recipes.assembly import Assembly, TaskData, fed_rows, learning_rates
from weft.recipes.costs import BodyTokens, count_tokens, passes_of
from weft.recipes.long_texts import describe_cuts
from weft.recipes.recipe import Recipe
from weft.schedules.plan import Plan
from weft.tasks.network import Network
from weft.training.frozen import FrozenOutputs

PAYS = 0.6
"""Fraction of the raw matrix-multiply rate that a training step reaches, for the time estimate."""
SAMPLED_WINDOWS, COUNTED_WINDOWS = 200, 20_000
OPEN = (WARNING, "doubt: ")
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class SplitFacts:
    """Summary of one file of one task."""

    task: str
    split: str
    rows: int
    labels: str
    median_tokens: int
    longest: int
    cut: int
    unseen: int
    """words that are cut off or have no token, for labels of words"""

    def __str__(self) -> str:
        cut = f", {self.cut:,} rows lose tokens" if self.cut else ""
        cut += f", {self.unseen:,} words not seen" if self.unseen else ""
        return (
            f"{self.task} {self.split}: {self.rows:,} rows; {self.labels}; "
            f"length: median {self.median_tokens} tokens, maximum {self.longest}{cut}"
        )


@dataclass(frozen=True)
class Findings:
    """Output of `weft check`."""

    splits: list[SplitFacts]
    steps: int
    plan: list[str]
    seconds: float
    """estimated time of all steps"""
    evaluations: int
    scoring: float
    """estimated time of all evaluations, in seconds"""
    parameters: int
    trained: int
    """parameters that train in any phase"""
    gigabytes: float
    remarks: list[str]
    layouts: list[str]
    """how csv and tsv files are read, where it is unambiguous; ambiguous files get a remark"""
    cuts: list[str]
    """tasks whose train rows lose tokens, and what reading all of them would cost"""

    @property
    def questions(self) -> int:
        """Number of warnings and doubts that a person should resolve."""
        return sum(remark.startswith(OPEN) for remark in self.remarks)

    def lines(self) -> Iterator[str]:
        yield from (str(split) for split in self.splits)
        yield from self.cuts
        yield from self.plan
        yield (
            f"{self.parameters / 1e6:.1f} million parameters{self._frozen()}; {self.steps:,} steps; on this machine "
            "roughly "
            f"{duration(self.seconds + self.scoring)} ({duration(self.scoring)} of it for {_times(self.evaluations)}) "
            f"and {self.gigabytes:.1f} GB of memory"
        )
        yield from self.layouts
        yield from (remark if remark.startswith(OPEN) else f"note: {remark}" for remark in self.remarks)

    def _frozen(self) -> str:
        return "" if self.trained == self.parameters else f", {self.trained / 1e6:.2f} million of them trained"


def examine(made: Assembly) -> Findings:
    """Summarize a run that is built but not trained."""
    data, network, plan = made.data, made.network, made.plan
    splits = [
        facts(dataset, split)
        for task in data.values()
        for split, dataset in (("train", task.train), ("dev", task.dev))
        if len(dataset)
    ]
    tokens = BodyTokens.of(data, made.step)
    scored = [made.dev_sample, made.train_sample()]
    frozen = made.frozen_outputs(scored)
    return Findings(
        splits=splits,
        steps=plan.steps,
        plan=[
            *describe_sources(fed_rows(data)),
            *describe_plan(made.recipe, plan, {name: len(fed) for name, fed in fed_rows(data).items()}),
        ],
        seconds=estimate_seconds(made, tokens, frozen),
        evaluations=len(plan.evaluations) + made.samples_dev,
        scoring=_estimate_evaluations(made, scored, frozen),
        parameters=sum(p.numel() for p in network.parameters()),
        trained=sum(p.numel() for p in trained_parameters(made).values()),
        gigabytes=estimate_memory(made, tokens) / 1e9,
        remarks=[*made.notes, *frozen.notes, *frozen.outlook],
        layouts=describe_layouts(data),
        cuts=[said for rows in fed_rows(data).values() if (said := describe_cuts(rows, network.body.shape.positions))],
    )


def describe_sources(train: dict[str, Dataset]) -> list[str]:
    """One line for each source with several tasks."""
    return [
        f"{', '.join(source.datasets)}: one source of {len(source):,} rows, each through the body once; labels: "
        + ", ".join(f"{len(dataset):,} {task}" for task, dataset in source.datasets.items())
        for source in find_sources(train)
        if len(source.datasets) > 1
    ]


def describe_layouts(data: dict[str, TaskData]) -> list[str]:
    """One line for each file with an unambiguous layout."""
    files = {dataset.file.source: dataset.file for task in data.values() for dataset in (task.train, task.dev)}
    return [f"{path}: {file.dialect}" for path, file in files.items() if file.dialect and file.dialect.is_obvious]


def _estimate_evaluations(made: Assembly, scored: Sequence[Mapping[str, Dataset]], frozen: FrozenOutputs) -> float:
    """Estimate the seconds of all evaluations of a run; rows with stored outputs do not go through the frozen layers.

    The final evaluation on all dev rows computes everything.
    """
    tokens = 0.0
    for step in made.plan.evaluations:
        phase = made.plan.phase(max(step - 1, 0))
        for source in (source for datasets in scored for source in find_sources(datasets)):
            share = max(frozen.share(phase, dataset) for dataset in source.datasets.values())
            tokens += share * source.token_counts().sum()
    final = [{name: task.dev for name, task in made.data.items()}, scored[1]] if made.samples_dev else []
    return _seconds(made.network, tokens) + estimate_scoring(made.network, final)


def describe_plan(recipe: Recipe, plan: Plan, sizes: dict[str, int]) -> list[str]:
    """Describe what each phase reads, its learning rate curve, and how often each row is seen."""
    rates = learning_rates(recipe, plan)
    lines = []
    start = 0
    for number, (phase, end) in enumerate(zip(recipe.resolved_phases(), plan.phase_ends, strict=True)):
        title = f"phase {number + 1}: " if len(plan.phase_ends) > 1 else ""
        steps = np.unique(np.linspace(start, end - 1, SAMPLED_WINDOWS).astype(int))
        reads = Counter(describe_window(plan.window(int(step))) for step in steps)
        most = " | ".join(text for text, _ in reads.most_common(3))
        lines.append(
            f"{title}{phase.schedule.name}, {phase.trainable.name}, {end - start:,} steps; a step reads {most}"
        )
        curve = [rates(int(step)) for step in np.linspace(start, end - 1, 40)]
        lines.append(f"{title}learning rate {sparkline(curve)} up to {max(curve):.3g}")
        start = end
    lines.append("each row is seen " + ", ".join(f"{seen:.2f} x in {task}" for task, seen in times_seen(plan, sizes)))
    return lines


def describe_window(window: Window) -> str:
    """Number of rows of each task in a window."""
    return ", ".join(f"{window.count(task)} {task}" for task in window.tasks)


def times_seen(plan: Plan, sizes: dict[str, int]) -> list[tuple[str, float]]:
    """Mean number of times a row of each task is seen, counted over all windows or a large sample of them."""
    steps = np.unique(np.linspace(0, plan.steps - 1, min(plan.steps, COUNTED_WINDOWS)).astype(int))
    rows: Counter[str] = Counter()
    for step in steps:
        for part in plan.window(int(step)).parts:
            rows[part.task] += len(part.rows)
    return [(task, rows[task] * plan.steps / len(steps) / size) for task, size in sizes.items()]


def sparkline(values: list[float]) -> str:
    """Draw numbers as a row of block characters, zero at the bottom."""
    highest = max(values)
    return "".join(BLOCKS[min(int(value / highest * len(BLOCKS)), len(BLOCKS) - 1)] for value in values)


def facts(dataset: Dataset, split: str) -> SplitFacts:
    """Summarize one file of one task."""
    counts = dataset.token_counts()
    return SplitFacts(
        dataset.task,
        split,
        len(dataset),
        dataset.labels.kind.distribution(dataset.labels, dataset.targets),
        int(np.median(counts)),
        int(counts.max()),
        dataset.cut_rows(),
        dataset.unseen_words(),
    )


def trained_parameters(made: Assembly) -> dict[str, nn.Parameter]:
    """Parameters of the network that train in any phase, by name."""
    modes = made.recipe.modes()
    return {name: p for name, p in made.network.named_parameters() if any(mode.trains(name) for mode in modes)}


def estimate_seconds(made: Assembly, tokens: BodyTokens, frozen: FrozenOutputs) -> float:
    """Estimate the training time from the matrix-multiply rate of this machine and the tokens of some windows.

    Stored outputs of frozen layers are computed once.
    """
    passes = [passes_of(made.network, mode) for mode in made.recipe.modes()]

    def share(phase: int, task: str) -> float:
        return frozen.share(phase, made.data[task].fed)

    return _seconds(made.network, tokens.of_training(made.plan, passes, share) + frozen.tokens)


def estimate_scoring(network: Network, splits: Sequence[Mapping[str, Dataset]]) -> float:
    """Estimate the seconds of one evaluation: a forward pass over all rows."""
    return _seconds(network, sum(count_tokens(datasets) for datasets in splits))


def _seconds(network: Network, tokens: float) -> float:
    """Estimate the seconds of a forward pass over tokens."""
    return float(2 * layer_weights(network) * tokens / (PAYS * multiply_rate(network.body.shape.width)))


def layer_weights(network: Network) -> int:
    """What a token is multiplied by in all layers; weights that they share count for each."""
    body = network.body
    return sum(p.numel() for p in body.layers.parameters()) * body.shape.layers // len(body.layers)


def estimate_memory(made: Assembly, tokens: BodyTokens) -> float:
    """Estimate bytes: weights; gradients and two moments of those that train; activations of the largest pass; Python
    and torch."""
    network, plan = made.network, made.plan
    sample = [plan.window(int(step)) for step in np.linspace(0, plan.steps - 1, min(20, plan.steps))]
    passes = [tokens.of_parts(parts) for window in sample for parts in window.micros]
    shape = network.body.shape
    # per token and layer: states before and after attention and feed-forward, queries, keys, values, both inner states
    per_token = shape.layers * (10 * shape.width + 2 * shape.inner)
    trained = sum(p.numel() for p in trained_parameters(made).values())
    weights = 4.0 * sum(p.numel() for p in network.parameters()) + 12.0 * trained
    return weights + 4.0 * max(passes) * per_token + 0.5e9


def duration(seconds: float) -> str:
    """Format an estimated duration in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} seconds" if seconds >= 1.5 else "1 second"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _times(evaluations: int) -> str:
    return "one evaluation" if evaluations == 1 else f"{evaluations} evaluations"


@cache
def multiply_rate(width: int) -> float:
    """Floating-point operations per second of the matrix multiply that dominates a step; measured once."""
    states, weight = torch.randn(1024, width), torch.randn(4 * width, width)
    end, fastest = time.perf_counter() + 0.2, float("inf")
    while (start := time.perf_counter()) < end:
        multiply(states, weight)
        fastest = min(fastest, time.perf_counter() - start)  # slower rounds measure other load on the machine
    return 2 * 1024 * width * 4 * width / fastest
