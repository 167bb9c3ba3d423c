"""Runs the trials of a sweep one at a time; any number of processes can work on the same sweep."""

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
from weft.training.listener import TrainListener


class Audience(Protocol):
    """Observer of a sweep."""

    def trial(self, claim: ClaimedTrial, planned: int) -> TrainListener:
        """Called when a trial starts; returns the listener of its training."""

    def ended(self, claim: ClaimedTrial, words: str) -> None:
        """Called when a trial has ended; `words` describes the result."""


def run_sweep(
    sweep: Sweep,
    out: Path,
    audience: Audience,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    trust_code: bool = False,
) -> Summary:
    """Run trials of the sweep in `out` until none is left to claim."""
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
        raise RunError(f"{out}: no trial finished. Error of the first trial: {why}")
    return found


def _settings(sweep: Sweep, first: Recipe, code: Mapping[str, SourceFile]) -> dict[str, Any]:
    """Return the settings that identify a sweep: all except the number of trials."""
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
    """Train a trial and record its result in the store. Returns a description of the result."""

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
        return "stopped: below the median of the other trials"
    except (Interrupted, OSError):
        raise  # not caused by the trial; another process can resume it
    except Exception as error:  # invalid values, divergence, out of memory: the other trials continue
        why = str(error) or type(error).__name__
        store.finish(claim, "FAIL", why=why)
        return f"failed: {why}"
    assert result is not None, "a trial has a single process, which is rank 0"
    score = _score(sweep, result)
    if not np.isfinite(score):
        store.finish(claim, "FAIL", why=f"{sweep.metric} is undefined")
        return f"failed: {sweep.metric} is undefined"
    store.finish(claim, "COMPLETE", score)
    return f"{sweep.metric} {score:.4f}"


def _score(sweep: Sweep, record: RunResult | EvaluationRecord) -> float:
    """Return the optimized metric of a result or an evaluation; NaN if it is undefined."""
    if sweep.metric == "overall":
        found = record.overall
    else:
        task, _, metric = sweep.metric.rpartition(".")
        found = record.dev[task][metric]
    return float("nan") if found is None else float(found)
