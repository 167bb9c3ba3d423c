"""What a run came to: result.json."""

import json
import resource
from typing import Any

import torch

from weft.runs.folder import RunFolder
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network


def run_result(recipe: ModelConfig, run: RunFolder, network: Network, seconds: float, tokens: int) -> dict[str, Any]:
    """What a run came to, read from its own log."""
    records = [json.loads(line) for line in run.metrics.read_text(encoding="utf-8").splitlines()]
    evaluations = [record for record in records if record["event"] == "evaluation"]
    best = [record for record in evaluations if record["best"]][-1]
    before = [record for record in evaluations if record["step"] == 0]
    return {
        "name": recipe.name,
        "seed": recipe.seed,
        "steps": records[-1]["step"],
        "best_step": best["step"],
        "best_epoch": best["epoch"],
        "dev": best["dev"],
        "overall": best["overall"],
        "selection": best["selection"],
        "untrained": best["untrained"],
        "warnings": best["warnings"],
        "before": {"dev": before[0]["dev"], "overall": before[0]["overall"]} if before else None,
        "seconds": round(seconds, 1),
        "tokens": tokens,
        "parameters": sum(p.numel() for p in network.parameters()),
        "peak_memory": _peak_memory(next(network.parameters()).device),
    }


def _peak_memory(device: torch.device) -> int:
    """Bytes: the most that this process held at a time; on a GPU, of the GPU's memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
