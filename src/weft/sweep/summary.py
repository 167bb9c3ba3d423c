"""The results of a sweep so far: sweep.json, a table and the best recipe."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.foundation.atomic import write_whole
from weft.foundation.content import toml_value
from weft.foundation.records import JsonRecord, to_json
from weft.recipes.recipe import Recipe, recipe_toml
from weft.runs.folder import RunPaths
from weft.sweep.config import Point, Sweep
from weft.sweep.store import Store

STATES = {"COMPLETE": "done", "PRUNED": "stopped", "FAIL": "failed", "RUNNING": "running", "WAITING": "waiting"}


@dataclass(frozen=True, kw_only=True)
class TrialRecord(JsonRecord):
    """A trial in sweep.json."""

    number: int
    state: str
    """One of the values of `STATES`."""
    score: float | None
    """Final score, or the last reported score of a trial without one."""
    settings: Point
    run: str
    """Run folder of the trial."""
    seconds: float | None
    why: str | None
    """Error message of a failed trial."""


@dataclass(frozen=True)
class Summary:
    """The trials of a sweep so far."""

    sweep: Sweep
    trials: list[TrialRecord]
    """In the order in which they started."""

    def count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def best(self) -> TrialRecord | None:
        done = self.ranked()
        return done[0] if done else None

    def ranked(self) -> list[TrialRecord]:
        """Return the finished trials, best first; ties are in the order in which they started."""
        done = [(trial.score, trial) for trial in self.trials if trial.state == "done" and trial.score is not None]
        done.sort(key=lambda scored: scored[0], reverse=not self.sweep.lower_is_better)
        return [trial for _, trial in done]

    @property
    def caution(self) -> str:
        """The note on selection bias that accompanies the best score."""
        best, tried = self.best, self.count("done") + self.count("stopped")
        if best is None:
            return ""
        return (
            f"{best.score:.4f} is the best of {tried} scores on the same dev rows, so it is optimistically "
            "biased: expect a lower score on new texts. To measure it, evaluate on rows that no trial was scored on: "
            f"weft evaluate {best.run} --split test, or --file TASK=FILE."
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.sweep.name,
            "base": self.sweep.base,
            "sampler": self.sweep.sampler,
            "metric": self.sweep.metric,
            "lower_is_better": self.sweep.lower_is_better,
            "planned": self.sweep.planned,
            "counts": {state: self.count(state) for state in STATES.values()},
            "best": self.best,
            "caution": self.caution,
            "trials": self.trials,
        }

    def table(self, rows: int | None = None) -> str:
        """Return a table of the finished trials, best first, then of the others; at most `rows` rows."""
        rest = [trial for trial in self.trials if trial.state != "done"]
        shown = [*self.ranked(), *rest][:rows]
        cells = [["trial", self.sweep.metric, "state", *self.sweep.search]]
        for trial in shown:
            score = "-" if trial.score is None else f"{trial.score:.4f}"
            cells.append([f"{trial.number:04d}", score, trial.state, *map(_shown, trial.settings.values())])
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join(lines)


def summarize(sweep: Sweep, store: Store) -> Summary:
    trials = []
    for trial in store.all():
        last = trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None
        trials.append(
            TrialRecord(
                number=trial.number,
                state=STATES[trial.state.name],
                score=trial.value if trial.state.name == "COMPLETE" else last,
                settings=store.values(trial),
                run=str(store.run_of(trial.number)),
                seconds=round(trial.duration.total_seconds(), 1) if trial.duration else None,
                why=trial.user_attrs.get("why"),
            )
        )
    return Summary(sweep, trials)


def write_summary(out: Path, found: Summary, recipe_of: Callable[[Point], Recipe]) -> None:
    """Write all summary files. Called after every trial, so that an interrupted sweep keeps its results."""
    write_whole(out / "sweep.json", to_json(found.as_json(), indent=2) + "\n")
    write_whole(out / "sweep.txt", f"{found.table()}\n\n{found.caution}\n")
    best = found.best
    if best is not None:
        recipe = recipe_of(best.settings).model_copy(update={"name": f"{found.sweep.name}-best"})
        steps = f", each trained for {found.sweep.budget.steps} steps" if found.sweep.budget else ""
        said = f"# Trial {best.number} of the sweep {found.sweep.name}{steps}.\n# {found.caution}\n"
        write_whole(out / "best.toml", said + recipe_toml(recipe))
    _tidy(found)


def _tidy(found: Summary) -> None:
    """Delete the weights of all trials except the best one, to save disk space."""
    for trial in found.trials:
        if trial.state in ("done", "stopped", "failed"):
            shutil.rmtree(RunPaths(Path(trial.run)).checkpoints, ignore_errors=True)
            if found.best is None or trial.number != found.best.number:
                shutil.rmtree(RunPaths(Path(trial.run)).model, ignore_errors=True)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else toml_value(value)
