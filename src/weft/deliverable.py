"""What a run leaves behind for others: the model folder and the predictions."""

import hashlib
import json
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from weft.card import model_card
from weft.content import read_json
from weft.data.dataset import Dataset
from weft.data.labels import Labels, Targets
from weft.data.tokenizer import Tokenizer
from weft.errors import UserError
from weft.evaluation.calibration import fit_temperature
from weft.evaluation.plane import Plane
from weft.evaluation.truth import Predictions, decide
from weft.recipe import Recipe, as_dict, parse_recipe
from weft.tasks.network import Network
from weft.tasks.store import copy_exactly, head_owners, heads_by_task, load_tensors, save_weights
from weft.training.checkpoint import sha256
from weft.training.run_folder import RunFolder
from weft.training.trainer import Evaluation
from weft.variants import file_name

FORMAT = 2
ROWS_AT_ONCE = 8192
"""written as predictions, with their texts"""


def save_model(
    network: Network,
    tokenizer: Tokenizer,
    recipe: Recipe,
    evaluation: Evaluation,
    train: Mapping[str, Dataset],
    dev: Mapping[str, Dataset],
    folder: Path,
) -> None:
    """The deliverable: opens in `transformers` as it is, and in weft with all tasks."""
    save_weights(network, folder)
    tokenizer.save(folder)
    tasks = {}
    for name in recipe.tasks:
        labels = network.task(name).labels
        tasks[name] = {**vars(labels), "names": list(labels.names)}
    content = {"format": FORMAT, "recipe": as_dict(recipe), "labels": tasks}
    if recipe.calibrate:
        content["temperatures"] = _temperatures(evaluation, dev)
    write_settings(folder, content, ["config.json", "model.safetensors", "heads.safetensors", "tokenizer.json"])
    (folder / "README.md").write_text(model_card(recipe, evaluation, train, dev), encoding="utf-8")


def _temperatures(evaluation: Evaluation, dev: Mapping[str, Dataset]) -> dict[str, float]:
    """The temperature of each task with classes that fits its dev rows best."""
    return {
        name: fit_temperature(evaluation.predictions[name], dataset.targets)
        for name, dataset in dev.items()
        if not dataset.labels.is_numeric
    }


@dataclass(frozen=True)
class Adoption:
    """What became of the heads of a model that a run starts from."""

    tasks: frozenset[str] = frozenset()
    """whose heads go on as they are in the model"""
    notes: tuple[str, ...] = ()


def adopt_heads(network: Network, recipe: Recipe, folder: Path) -> Adoption:
    """When the body is a model of ours, its heads come along for the tasks that have not changed; says what it did."""
    if not (folder / "weft.json").exists():
        return Adoption()
    model = read_model(folder)
    saved = load_tensors(folder / "heads.safetensors")
    notes = []
    adopted = set()
    for name, tensors in heads_by_task(network).items():
        if not tensors:
            continue  # a head without weights, or one that another task owns
        if name not in model.labels:
            notes.append(f"{name}: is new to {folder}; its head starts at random")
        elif model.labels[name] != network.task(name).labels:
            notes.append(f"{name}: has other labels in {folder}; its head starts at random")
        elif any(key not in saved or saved[key].shape != tensor.shape for key, tensor in tensors.items()):
            notes.append(f"{name}: has another head in {folder}; its head starts at random")
        else:
            copy_exactly(tensors, {key: saved[key] for key in tensors}, str(folder))
            adopted.add(name)
            notes.append(f"{name}: goes on with the head of {folder}{_changed(name, model.recipe, recipe)}")
    for name in network.tasks:
        owners = head_owners(network, name) - {name}
        if owners:
            start = f"goes on with that of {folder}" if owners <= adopted else "starts at random"
            notes.append(f"{name}: shares the head of {', '.join(sorted(owners))}, which {start}")
            if owners <= adopted and (name in adopted or not heads_by_task(network)[name]):
                adopted.add(name)
    dropped = [name for name in model.recipe.tasks if name not in recipe.tasks]
    if dropped:
        it, tasks = ("it", "task") if len(dropped) == 1 else ("them", "tasks")
        source = folder.parent / "recipe.toml"
        notes.append(
            f"{folder} also has the {tasks} {', '.join(dropped)}, which this recipe does not name: the new model will "
            f"not have {it}. To keep {it}, add {', '.join(f'[tasks.{name}]' for name in dropped)} to the recipe"
            f"{f' as in {source}' if source.is_file() else ''}; with body = {str(folder)!r}, tasks that have the same "
            "name, labels and head go on with their trained heads"
        )
    return Adoption(frozenset(adopted), tuple(notes))


def _changed(task: str, before: Recipe, now: Recipe) -> str:
    """What a head was trained on that is different now."""
    old, new = before.tasks[task], now.tasks[task]
    keys = [key for key in ("reading", "pooling", "layer", "head") if getattr(old, key) != getattr(new, key)]
    return f", which was trained with another {' and '.join(keys)}" if keys else ""


def write_settings(folder: Path, content: dict[str, Any], files: Sequence[str]) -> None:
    """weft.json, with checksums of the files that decide a model's answers, and of itself."""
    sealed = content | {"checksums": {name: sha256(folder / name) for name in files}}
    sealed["own_checksum"] = _digest(sealed)
    (folder / "weft.json").write_text(json.dumps(sealed, indent=2) + "\n", encoding="utf-8")


def read_settings(folder: Path) -> dict[str, Any]:
    """weft.json of a model folder; a damaged folder is refused."""
    file = folder / "weft.json"
    if not file.is_file():
        raise UserError(f"{folder}: is not a weft model; expected a run folder, or one with weft.json")
    content = read_json(file)
    if content.get("format") != FORMAT:
        raise UserError(f"{file}: has format {content.get('format')!r}, this weft reads {FORMAT}")
    if content.pop("own_checksum", None) != _digest(content):
        raise UserError(f"{file}: is damaged or was changed by hand; make the model again, or get a sound copy")
    for name, expected in content.pop("checksums").items():
        if not (folder / name).is_file() or sha256(folder / name) != expected:
            raise UserError(f"{folder / name}: is damaged or belongs to another model; get a sound copy of the folder")
    return content


@dataclass(frozen=True)
class Settings:
    """What a model folder was made with."""

    recipe: Recipe
    labels: dict[str, Labels]
    temperatures: dict[str, float]
    """what the probabilities of each task are tempered by; empty for a model that was not calibrated"""


def read_model(folder: Path) -> Settings:
    content, file = read_settings(folder), folder / "weft.json"
    try:
        recipe, saved = parse_recipe(content["recipe"], str(file)), content["labels"]
        labels = {name: Labels(**{**saved[name], "names": tuple(saved[name]["names"])}) for name in recipe.tasks}
        return Settings(recipe, labels, content.get("temperatures", {}))
    except (KeyError, TypeError) as error:
        raise UserError(f"{file}: its labels do not fit its recipe ({error!r})") from None


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def save_predictions(evaluation: Evaluation, datasets: dict[str, Dataset], folder: Path) -> None:
    """TASK.parquet for each task: texts, label, prediction and place of the embedding (`pca_*`) of every dev row."""
    for name, dataset in datasets.items():
        predictions, plane = evaluation.predictions[name], evaluation.planes[name]
        with pq.ParquetWriter(folder / f"{file_name(name)}.parquet", _schema(dataset, plane)) as writer:
            for start in range(0, len(dataset), ROWS_AT_ONCE):
                rows = range(len(dataset))[start : start + ROWS_AT_ONCE]
                writer.write_table(pa.table(_columns(dataset, rows, predictions, plane), schema=writer.schema))


def _schema(dataset: Dataset, plane: Plane) -> pa.Schema:
    labels = dataset.labels
    label = pa.float64() if labels.is_numeric else pa.string()
    if labels.kind == "multilabel":
        label = pa.list_(label)
    texts = dict.fromkeys(("text", "text2")[: len(dataset.columns)], pa.string())
    numbers = [*(f"p_{name}" for name in labels.names), "pca_1", "pca_2"]
    types = {"row": pa.int64(), **texts, "label": label, "prediction": label, **dict.fromkeys(numbers, pa.float64())}
    return pa.schema(types, {"pca_explained": json.dumps(plane.explained)})


def _columns(dataset: Dataset, rows: range, predictions: Predictions, plane: Plane) -> dict[str, Any]:
    """What predictions/TASK.parquet says of some rows."""
    part = slice(rows.start, rows.stop)
    targets, predictions = dataset.targets[part], predictions[part]
    sides = zip(*(dataset.texts(row) for row in rows), strict=True)
    columns: dict[str, Any] = {"row": list(rows), **dict(zip(("text", "text2"), sides, strict=False))}
    labels = dataset.labels
    if labels.is_numeric:
        columns["label"] = labels.in_units(np.asarray(targets, dtype=np.float64))
        columns["prediction"] = labels.in_units(predictions)
    else:
        columns["label"] = _named(labels, targets)
        columns["prediction"] = _named(labels, decide(predictions, targets))
        columns |= {f"p_{label}": predictions[:, i] for i, label in enumerate(labels.names)}
    return columns | {"pca_1": plane.points[part, 0], "pca_2": plane.points[part, 1]}


def _named(labels: Labels, classes: Targets) -> list[Any]:
    """Class numbers as names; for multilabel the list of all that apply."""
    if classes.ndim == 2:
        return [[name for name, on in zip(labels.names, row, strict=True) if on] for row in classes]
    return [labels.names[int(number)] for number in classes]


def run_result(recipe: Recipe, run: RunFolder, network: Network, seconds: float, tokens: int) -> dict[str, Any]:
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
