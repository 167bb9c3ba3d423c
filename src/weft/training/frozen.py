"""Which outputs of a frozen body each phase of a run stores.

In a phase that freezes the embeddings and the lowest layers of the body, their outputs for a row never change. Before
the first step of the phase they are computed for all rows that it reads more than once, and batches carry them from
then on: pooled vectors if the whole body is frozen and the task's pooling has no weights of its own, so that a step
runs the heads alone, else the states of all tokens after the last frozen layer, from which the other layers start.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.data.dataset import Dataset
from weft.data.stored import StoredLayout, StoredRows
from weft.foundation.values import Rows
from weft.nn.layers import OneLayer
from weft.nn.pooling import WEIGHTLESS
from weft.schedules.plan import Plan
from weft.tasks.task import Task
from weft.training.distributed import SOLO, Processes
from weft.training.outputs import CacheConfig, OutputForm, OutputStore, Stock, in_words
from weft.training.step import Step
from weft.training.trainable import TrainableConfig, set_trainable


@dataclass(frozen=True)
class Reads:
    """The rows of a data set that a phase reads."""

    dataset: Dataset
    rows: Rows
    """indices in the file, ascending"""
    count: int
    """how many rows are read in the whole phase, repeats included"""

    @property
    def task(self) -> str:
        return self.dataset.task


class FrozenOutputs:
    """The stored outputs of the frozen layers, phase by phase."""

    def __init__(
        self,
        config: CacheConfig,
        step: Step,
        plan: Plan,
        modes: Sequence[TrainableConfig],
        scored: Sequence[Mapping[str, Dataset]],
        processes: Processes = SOLO,
        *,
        averaged: bool = False,
    ) -> None:
        """`scored` are the data sets of an evaluation, `averaged` whether an average of the weights is evaluated.

        Raises UserError if the disk is too small for what is to be stored.
        """
        self.config = config
        self.step = step
        self.network = step.network
        self.plan = plan
        self.scored = scored
        self.processes = processes
        self.averaged = averaged
        self.store = OutputStore(config, step.network, step.device)
        self.notes: list[str] = []
        """what to tell the user before the run"""
        self._phases = self._survey(modes) if config.states == "auto" else [[] for _ in modes]
        self.store.require_space(self.size)

    @property
    def outlook(self) -> list[str]:
        """What each phase is going to store."""
        return [f"{self._named(number)}{_described(own)}" for number, own in enumerate(self._phases) if own]

    @property
    def tokens(self) -> int:
        """Number of tokens that go through the frozen layers to fill the store."""
        return sum(int(stock.layout.tokens.sum()) for stocks in self._phases for stock in stocks)

    @property
    def size(self) -> int:
        """Bytes of what the largest phase stores."""
        return max(sum(stock.layout.bytes for stock in stocks) for stocks in self._phases)

    def share(self, number: int, dataset: Dataset) -> float:
        """Return the fraction of the body's layers that rows of a data set go through in a phase."""
        for stock in self._phases[number]:
            if dataset in stock.datasets:
                return 0.0 if stock.form.depth is None else 1 - stock.form.depth / self.network.body.shape.layers
        return 1.0

    def enter(self, number: int) -> list[str]:
        """Store what a phase reads again and again, and attach it to the data sets; return what to tell the user.

        Called at the start of a phase, after its parameters are frozen. Each process computes a share of the parts.
        """
        self.detach()
        stocks = self._phases[number]
        if not stocks:
            return []
        begun = time.perf_counter()
        digest = self.store.body_digest()
        files = [(stock, self.store.paths(stock, digest)) for stock in stocks]
        jobs = [(stock, part, path) for stock, paths in files for part, path in enumerate(paths)]
        size = sum(stock.layout.bytes for stock in stocks)
        with self.processes.agreement():
            self.store.make_room({path for _, _, path in jobs}, size)
            arrays = {job[2]: self.store.open(*job) for job in jobs[self.processes.rank :: self.processes.count]}
        arrays |= {job[2]: self.store.open(*job) for job in jobs if job[2] not in arrays}
        for stock, paths in files:
            stored = StoredRows(stock.layout, [arrays[path] for path in paths], self.store.dtype)
            for dataset in stock.datasets:
                dataset.stored = stored
        seconds = time.perf_counter() - begun
        return [f"{self._named(number)}{_described(stocks)}, ready in {seconds:.0f} s"]

    def detach(self) -> None:
        """Let all data sets be computed from their tokens."""
        for datasets in (self.step.ahead.datasets, *self.scored):
            for dataset in datasets.values():
                dataset.stored = None

    def _named(self, number: int) -> str:
        return f"phase {number + 1}: " if len(self.plan.phase_ends) > 1 else ""

    def _survey(self, modes: Sequence[TrainableConfig]) -> list[list[Stock]]:
        """Return what each phase stores. Leaves the network as it is."""
        before, settled_before = [p.requires_grad for p in self.network.parameters()], self.network.settled
        found, settled = [], list[int]()
        for number, mode in enumerate(modes):
            set_trainable(self.network, mode)
            settled.append(self.network.settled)
            # the average of weights that were trained in an earlier phase still moves
            constant = not self.averaged or min(settled) == settled[-1]
            found.append(self._stocks(number, scores_constant=constant) if settled[-1] else [])
        for parameter, trains in zip(self.network.parameters(), before, strict=True):
            parameter.requires_grad_(trains)
        self.network.settled = settled_before
        self.network.train(self.network.training)
        if not any(settled) and self.config != CacheConfig():
            self.notes.append("cache: has no effect, because no phase freezes the lowest layers without dropout")
        return found

    def _stocks(self, number: int, *, scores_constant: bool) -> list[Stock]:
        """Return what a phase stores, with its parameters frozen; add notes about what does not fit."""
        if self.step.on_outputs:
            self.notes.append(
                f"cache: {self._named(number)}outputs of the frozen layers are computed at every step, because a "
                "penalty compares outputs with those of an earlier body"
            )
            return []
        found: list[Stock] = []
        for what, stocks in (
            ("train", self._train_stocks(number)),
            ("dev", self._scored_stocks(number) if scores_constant else []),
        ):
            size, taken = (sum(stock.layout.bytes for stock in some) for some in (stocks, found))
            if size + taken <= self.store.most:
                found += stocks
            else:
                self.notes.append(
                    f"cache.max_gb: {self._named(number)}outputs of the frozen layers for {what} rows need "
                    f"{in_words(size)}, but {in_words(self.store.most - taken)} are left; they are computed at every "
                    "step"
                )
        return found

    def _train_stocks(self, number: int) -> list[Stock]:
        draws = self._draws(number)
        # a regularizer runs the whole body again, with other embeddings
        reads = [own for own in draws if self.network.task(own.task).regularizer is None]
        forms = {own.task: self._form(self.network.task(own.task)) for own in reads}
        if left_out := [own.task for own in draws if forms.get(own.task) is None]:
            self.notes.append(
                f"cache: {self._named(number)}{', '.join(left_out)}: the frozen layers run at every step, because the "
                "task has a regularizer or reads a layer below the last frozen one"
            )
        stocks = self._grouped(reads)
        stored = {dataset.task for stock in stocks for dataset in stock.datasets}
        if all(own.task in stored for own in reads):
            return stocks
        # all sequences of a pass start at one layer, so states of some of its tasks would not be read
        return [stock for stock in stocks if stock.form.depth is None]

    def _draws(self, number: int) -> list[Reads]:
        """Return the rows that the steps of a phase draw, by task."""
        drawn: dict[str, list[Rows]] = {}
        for step in range(self._start(number), self.plan.phase_ends[number]):
            for part in self.plan.window(step).parts:
                drawn.setdefault(part.task, []).append(part.rows)
        found = []
        for task, pieces in drawn.items():
            dataset, rows = self.step.ahead.datasets[task], np.concatenate(pieces)
            found.append(Reads(dataset, np.sort(dataset.rows[np.unique(rows)]), len(rows)))
        return found

    def _scored_stocks(self, number: int) -> list[Stock]:
        start, stop = self._start(number), self.plan.phase_ends[number]
        # the evaluation between two phases belongs to the first, whose weights it has
        times = sum(start < step <= stop or step == start == 0 for step in self.plan.evaluations)
        return [
            stock
            for datasets in self.scored
            for stock in self._grouped([Reads(own, np.sort(own.rows), times * len(own)) for own in datasets.values()])
        ]

    def _start(self, number: int) -> int:
        return self.plan.phase_ends[number - 1] if number else 0

    def _grouped(self, reads: Sequence[Reads]) -> list[Stock]:
        """Return what is stored for some data sets; those that read the same texts share it if they can."""
        found = []
        for source in _alike(reads, [own.dataset.texts_key for own in reads]):
            forms = {own.task: self._form(self.network.task(own.task)) for own in source}
            if None in forms.values():  # these texts go through the whole body in any case, once for all tasks
                source = [own for own in source if (form := forms[own.task]) is not None and form.depth is None]
            for group in _alike(source, [forms[own.task] for own in source]):
                form = forms[group[0].task]
                rows = np.unique(np.concatenate([own.rows for own in group]))
                if form is None or max(own.count for own in group) <= len(rows):
                    continue  # nothing is gained if each row is read once
                tokens = group[0].dataset.sequence_tokens(rows)
                size = self.store.stored_dtype.itemsize
                layout = StoredLayout(rows, tokens, depth=form.depth, width=form.width, itemsize=size)
                found.append(Stock(tuple(own.dataset for own in group), form, layout))
        return found

    def _form(self, task: Task) -> OutputForm | None:
        """Return what is stored for a task; None if it needs the outputs of several layers or of a lower layer."""
        body, depth = self.network.body, self.network.settled
        adapter = task.name if task.name in self.network.adapters else ""
        if not isinstance(task.layer, OneLayer):
            return None
        poolings = (task.pooling, task.windows)
        trains = any(p.requires_grad for pooling in poolings for p in pooling.parameters())
        if depth == body.shape.layers and not trains and all(type(pooling) in WEIGHTLESS for pooling in poolings):
            names = " ".join(type(pooling).__name__ for pooling in poolings)
            return OutputForm(None, task.pooling.width, f"layer {task.layer.number} {names}", adapter)
        return OutputForm(depth, body.shape.width, adapter=adapter) if task.layer.number >= depth else None


def _described(stocks: Sequence[Stock]) -> str:
    what = " and ".join(sorted({str(stock.form) for stock in stocks}))
    rows = sum(len(stock.layout.rows) for stock in stocks)
    size = in_words(sum(stock.layout.bytes for stock in stocks))
    return f"the frozen layers run once per row: {what} of {rows:,} rows are stored ({size})"


def _alike(reads: Iterable[Reads], keys: Iterable[object]) -> list[list[Reads]]:
    """Group those with equal keys, in the order of their first."""
    groups: dict[object, list[Reads]] = {}
    for own, key in zip(reads, keys, strict=True):
        groups.setdefault(key, []).append(own)
    return list(groups.values())
