"""The result of a run: result.json."""

import resource

import torch

from weft.runs.folder import RunFolder
from weft.runs.records import EvaluationRecord, FinalRecord, RunResult, UntrainedScores, read_log
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network


def run_result(
    recipe: ModelConfig,
    run: RunFolder,
    network: Network,
    *,
    seconds: float,
    cpu_seconds: float,
    tokens: int,
    planned_steps: int,
) -> RunResult:
    """Build the result of a run from its log."""
    records = read_log(run.paths.metrics)
    evaluations = [record for record in records if isinstance(record, EvaluationRecord)]
    final = next((record for record in records if isinstance(record, FinalRecord)), None)
    best = final or [record for record in evaluations if record.best][-1]
    before = [record for record in evaluations if record.step == 0]
    return RunResult(
        name=recipe.name,
        seed=recipe.seed,
        steps=max(record.step for record in records),
        best_step=best.step,
        best_epoch=best.epoch,
        dev=best.dev,
        overall=best.overall,
        selection=best.selection,
        untrained=best.untrained,
        auxiliary=best.auxiliary,
        selected_on={} if final is None else final.selected_on,
        thresholds=best.thresholds,
        warnings=best.warnings,
        before=UntrainedScores(dev=before[0].dev, overall=before[0].overall) if before else None,
        seconds=round(seconds, 1),
        cpu_seconds=round(cpu_seconds, 1),
        tokens=tokens,
        parameters=sum(p.numel() for p in network.parameters()),
        peak_memory=_peak_memory(next(network.parameters()).device),
        planned_steps=planned_steps,
    )


def _peak_memory(device: torch.device) -> int:
    """Peak memory of this process in bytes; on a GPU, of the GPU's memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
