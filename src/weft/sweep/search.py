"""Runs the trials of a sweep, one after the other, beside any number of other processes that do the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weft.foundation.content import Content
from weft.foundation.errors import Interrupted, RunError
from weft.foundation.own_code import SourceFile, code_digests
from weft.recipes.recipe import Recipe
from weft.run import train_run
from weft.runs.records import EvaluationRecord, RunResult, log_record
from weft.sweep.config import Sweep, check_points, recipe_at
from weft.sweep.store import Behind, ClaimedTrial, Store
from weft.sweep.summary import Summary, summarize, write_summary
from weft.training.loop import TrainListener


class Audience(Protocol):
    """Whoever watches a sweep."""

    def trial(self, claim: ClaimedTrial, planned: int) -> TrainListener:
        """A trial begins; who listens to it?"""

    def ended(self, claim: ClaimedTrial, words: str) -> None:
        """What became of it."""


def run_sweep(
    sweep: Sweep,
    out: Path,
    audience: Audience,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> Summary:
    """Work on the sweep in `out` until nothing is left to take."""
    first = check_points(sweep, data_dir, trust_code)
    _, code = first.with_code(trust_code, sweep.base)
    store = Store(out, sweep, _settings(sweep, first, code))
    while (claim := store.take()) is not None:
        recipe = recipe_at(sweep, claim.point, data_dir, f"{sweep.name}-{claim.number:04d}")
        words = _run(sweep, store, claim, recipe, audience.trial(claim, sweep.planned), device, trust_code)
        with store.alone():
            write_summary(out, summarize(sweep, store), lambda point: recipe_at(sweep, point, data_dir))
        audience.ended(claim, words)
    with store.alone():
        found = summarize(sweep, store)
        write_summary(out, found, lambda point: recipe_at(sweep, point, data_dir))
    if found.best is None and not found.count("running"):
        why = found.trials[0].why if found.trials else ""
        raise RunError(f"{out}: no trial came to an end. The first one: {why}")
    return found


def _settings(sweep: Sweep, first: Recipe, code: Mapping[str, SourceFile]) -> dict[str, Any]:
    """What makes two sweeps the same: all but the number of trials."""
    asked = sweep.model_dump(mode="json", exclude={"trials"}, exclude_none=True)
    settings: dict[str, Any] = json.loads(json.dumps({**asked, "recipe": first.content(), **code_digests(code)}))
    return settings


def _run(
    sweep: Sweep,
    store: Store,
    claim: ClaimedTrial,
    recipe: Recipe,
    listener: TrainListener,
    device: str,
    trust_code: bool,
) -> str:
    """Train a trial and tell the store how it ended; returns that in words."""

    def watch(content: Content) -> None:
        record = log_record(content, "the log")
        if sweep.prune and isinstance(record, EvaluationRecord) and record.step > 0:
            store.report(claim, record.epoch, _score(sweep, record))

    steps = sweep.budget.steps if sweep.budget else None
    try:
        result = train_run(
            recipe,
            claim.run,
            listener,
            steps=steps,
            device=device,
            resume=True,
            followers=[watch],
            trust_code=trust_code,
        )
    except Behind:
        store.finish(claim, "PRUNED")
        return "stopped: it falls behind the others"
    except (Interrupted, OSError):
        raise  # the trial is not to blame; the next process goes on with it
    except Exception as error:  # a combination that is refused, diverges or needs too much memory: the rest go on
        why = str(error) or type(error).__name__
        store.finish(claim, "FAIL", why=why)
        return f"failed: {why}"
    assert result is not None, "a trial has one process, which leads itself"
    score = _score(sweep, result)
    if not np.isfinite(score):
        store.finish(claim, "FAIL", why=f"{sweep.metric} is undefined")
        return f"failed: {sweep.metric} is undefined"
    store.finish(claim, "COMPLETE", score)
    return f"{sweep.metric} {score:.4f}"


def _score(sweep: Sweep, record: RunResult | EvaluationRecord) -> float:
    """The searched metric in a result or an evaluation; NaN where it is undefined."""
    if sweep.metric == "overall":
        found = record.overall
    else:
        task, _, metric = sweep.metric.rpartition(".")
        found = record.dev[task][metric]
    return float("nan") if found is None else float(found)
