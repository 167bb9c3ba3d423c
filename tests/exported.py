"""Model folders with random heads on a tiny body, for tests of what leaves weft: nothing is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.texts import WORDS
from tests.tiny import matches_task, recipe_content, write_body
from weft.build import assemble
from weft.inference.engine import TorchEngine
from weft.inference.evaluate import evaluate
from weft.recipes.recipe import parse_recipe
from weft.runs.model_folder import save_model

MAX_LENGTH = 128
LENGTHS = (1, 2, 3, 5, 9, 17, 33, 60, 90, 126, 200)
"""words in a text; each is a token or more, and two special tokens come on top"""
TEXTS = [" ".join(WORDS[(7 * n + k) % len(WORDS)] for k in range(n)) for n in LENGTHS]
SECONDS = [" ".join(WORDS[(5 * n + 3 * k) % len(WORDS)] for k in range(1 + (n * 7) % 40)) for n in LENGTHS]


def write_model(tiny: Path, folder: Path, tasks: dict[str, dict[str, Any]], **changes: Any) -> Path:
    """A model folder. A task names the one of `recipe_content` that it starts `like`, and what it changes."""
    if "body" not in changes:
        changes |= {"body": str(write_body(folder / "body", positions=MAX_LENGTH)), "max_length": MAX_LENGTH}
    content = recipe_content(tiny, **changes)
    known = content["tasks"] | {"matches": matches_task(tiny)}
    content["tasks"] = {
        name: known[own["like"]] | {k: v for k, v in own.items() if k != "like"} for name, own in tasks.items()
    }
    made = assemble(parse_recipe(content, "exported"), device="cpu")
    network = made.network.eval()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(5)
        for name, parameter in network.named_parameters():  # far enough from zero that a mistake shows
            scale = 0.3 if not name.startswith("body.") or "embeddings" in name else 0.15
            parameter.add_(scale * torch.randn_like(parameter))
    dev = {name: task.dev for name, task in made.data.items()}
    train = {name: task.train for name, task in made.data.items()}
    metrics = {name: network.task(name).metrics for name in dev}
    evaluation = evaluate(TorchEngine(network, torch.device("cpu")), dev, metrics)
    out = folder / "model"
    out.mkdir()
    save_model(network, made.tokenizer, made.recipe, evaluation, train, dev, out)
    return out


def cosines(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
