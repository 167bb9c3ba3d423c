"""The trials of a sweep, in a database that any number of processes share.

A process that runs a trial holds the lock of the trial. The kernel releases the lock when the process dies, so a trial
that is marked as running but not locked was interrupted: the next free process resumes it.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from weft.foundation.atomic import open_in_place, require_no_links
from weft.foundation.content import differences, toml_value
from weft.foundation.errors import RunError, UserError
from weft.foundation.randomness import derive, generator
from weft.sweep.config import Point, Range, Sweep

try:
    import optuna
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise UserError('a sweep needs Optuna; pip install "weft[sweep]"') from None

optuna.logging.set_verbosity(optuna.logging.WARNING)
PATIENCE_OF_SQLITE = 60
"""Seconds that a process waits for another process to finish its write."""


BEFORE_THE_DATABASE = {"trials", ".locks", ".lock"}
"""Files that another process may create before the database exists."""


class Behind(Exception):
    """Raised when a trial should be pruned."""


@dataclass(frozen=True)
class ClaimedTrial:
    """A trial that this process has claimed."""

    number: int
    point: Point
    run: Path
    goes_on: bool
    """Whether the trial resumes after an interruption."""
    trial: optuna.Trial
    lock: IO[str]


class Store:
    """`OUT/sweep.db`, and `OUT/trials/NNNN` for the runs."""

    def __init__(self, out: Path, sweep: Sweep, settings: dict[str, Any]) -> None:
        """Open or create the store. Raises UserError if `out` contains a sweep with other `settings`."""
        self.out = out
        self.sweep = sweep
        self.trials = out / "trials"
        self.locks = out / ".locks"
        database = out / "sweep.db"
        if out.exists() and not (out.is_dir() and (database.exists() or _names(out) <= BEFORE_THE_DATABASE)):
            raise UserError(f"{out}: exists and is not a sweep; choose another folder with -o")
        try:
            self.trials.mkdir(parents=True, exist_ok=True)
            self.locks.mkdir(exist_ok=True)
            require_no_links(out)
        except OSError as error:
            raise UserError(f"{out}: cannot be written ({error.strerror})") from None
        with self.alone():
            storage = optuna.storages.RDBStorage(
                f"sqlite:///{database}", engine_kwargs={"connect_args": {"timeout": PATIENCE_OF_SQLITE}}
            )
            self.study = optuna.create_study(
                storage=storage,
                study_name=sweep.name,
                direction="minimize" if sweep.lower_is_better else "maximize",
                pruner=self._pruner(),
                load_if_exists=True,
            )
            self._reject_other_sweep(settings)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the sweep: no other process claims a trial or writes a summary inside this context."""
        with open_in_place(self.out / ".lock", "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                yield
            except optuna.exceptions.StorageInternalError as error:
                raise RunError(f"{self.out / 'sweep.db'}: cannot be read or written ({error.__cause__})") from None

    def take(self) -> ClaimedTrial | None:
        """Claim an interrupted trial, else a new one. Returns None if all trials are finished or claimed."""
        with self.alone():
            trials = self.all()
            for trial in trials:
                if trial.state == TrialState.RUNNING and (lock := self._lock(trial.number)):
                    # Optuna has no public API to continue a trial that another process started
                    self.study.sampler = self._sampler(trial.number)
                    return self._claim(optuna.Trial(self.study, trial._trial_id), lock, goes_on=True)
            # a waiting trial was enqueued by a process that was killed before it claimed the trial
            number = next((t.number for t in trials if t.state == TrialState.WAITING), len(trials))
            if number >= self.sweep.planned:
                return None
            lock = self._lock(number)
            assert lock is not None, "a trial that was never started is not locked"
            if self.sweep.sampler == "grid" and number == len(trials):
                self.study.enqueue_trial({key: toml_value(value) for key, value in self._grid()[number].items()})
            self.study.sampler = self._sampler(number)
            return self._claim(self.study.ask(), lock, goes_on=False)

    def finish(self, claim: ClaimedTrial, state: str, score: float | None = None, why: str | None = None) -> None:
        """Record the end of a trial. `state` is COMPLETE (with a score), PRUNED or FAIL (with a reason)."""
        with self.alone():
            if why is not None:
                claim.trial.set_user_attr("why", why)
            self.study.tell(claim.number, score, TrialState[state])
            claim.lock.close()

    def report(self, claim: ClaimedTrial, epoch: int, score: float) -> None:
        """Report the score of a trial after an epoch. Raises Behind if the trial should be pruned."""
        with self.alone():
            if epoch not in self.all()[claim.number].intermediate_values:
                claim.trial.report(score, epoch)  # a resumed trial may repeat an evaluation
            behind = claim.trial.should_prune()
        if behind:
            raise Behind

    def all(self) -> list[FrozenTrial]:
        return list(self.study.get_trials(deepcopy=False))

    def values(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the recipe values of a trial, without keys that were never sampled."""
        found = {}
        for key, space in self.sweep.search.items():
            if key in trial.params:
                chosen = trial.params[key]
                found[key] = chosen if isinstance(space, Range) else space[_texts(space).index(chosen)]
        return found

    def run_of(self, number: int) -> Path:
        return self.trials / f"{number:04d}"

    def _claim(self, trial: optuna.Trial, lock: IO[str], *, goes_on: bool) -> ClaimedTrial:
        return ClaimedTrial(trial.number, self._point(trial), self.run_of(trial.number), goes_on, trial, lock)

    def _lock(self, number: int) -> IO[str] | None:
        handle = open_in_place(self.locks / f"{number:04d}", "w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            return None
        return handle

    def _grid(self) -> list[Point]:
        """Return the grid in random order, so that a part of it is a random sample."""
        grid = self.sweep.grid()
        return [grid[i] for i in generator(self.sweep.seed, "grid").permutation(len(grid))]

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        """Return a sampler with a seed per trial, so that a resumed sweep does not repeat the first points."""
        seed = derive(self.sweep.seed, number, "sweep") % 2**32
        samplers = optuna.samplers
        return samplers.TPESampler(seed=seed) if self.sweep.sampler == "tpe" else samplers.RandomSampler(seed=seed)

    def _pruner(self) -> optuna.pruners.BasePruner:
        wanted = self.sweep.prune
        if wanted is None:
            return optuna.pruners.NopPruner()
        return optuna.pruners.MedianPruner(n_startup_trials=wanted.trials, n_warmup_steps=wanted.epochs)

    def _point(self, trial: optuna.Trial) -> Point:
        """Sample a value for every key; values that a trial already has are kept."""
        return {key: _suggest(trial, key, space) for key, space in self.sweep.search.items()}

    def _reject_other_sweep(self, settings: dict[str, Any]) -> None:
        before = self.study.user_attrs.get("sweep")
        if before is None:
            self.study.set_user_attr("sweep", settings)
            return
        changes = [f"{key}: was {old!r}, is now {new!r}" for key, old, new in differences(before, settings)]
        if changes:
            raise UserError(
                f"{self.out}: contains a different sweep ({'; '.join(changes)}); only `trials` may change when a sweep "
                "resumes; choose another folder with -o"
            )


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _suggest(trial: optuna.Trial, key: str, space: tuple[Any, ...] | Range) -> Any:
    if not isinstance(space, Range):  # Optuna's categories are strings; as TOML text, tables and lists work too
        texts = _texts(space)
        return space[texts.index(trial.suggest_categorical(key, texts))]
    if space.is_whole:
        return trial.suggest_int(key, int(space.low), int(space.high), step=int(space.step or 1), log=space.log)
    return trial.suggest_float(key, space.low, space.high, step=space.step, log=space.log)


def _texts(values: tuple[Any, ...]) -> list[str]:
    return [toml_value(value) for value in values]
