"""The model folder: writes, checks and reads it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from weft.data.dataset import Dataset
from weft.data.tokenizer import Tokenizer
from weft.evaluation.calibration import fit_temperature
from weft.evaluation.scoring import Evaluation
from weft.evaluation.thresholds import TunedThresholds
from weft.foundation.atomic import sha256
from weft.foundation.config import parse
from weft.foundation.content import read_json
from weft.foundation.errors import UserError
from weft.kinds.labels import Labels
from weft.kinds.probability import ProbabilityKind
from weft.runs.card import model_card
from weft.runs.folder import RunPaths
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network
from weft.tasks.store import ADAPTERS, HEADS, save_weights

FORMAT = 2
BODY_FILES = frozenset({"config.json", "model.safetensors", HEADS})


def save_model(
    network: Network,
    tokenizer: Tokenizer,
    config: ModelConfig,
    evaluation: Evaluation,
    train: Mapping[str, Dataset],
    dev: Mapping[str, Dataset],
    folder: Path,
) -> None:
    """Save a model folder. `transformers` loads its body, weft loads it with all tasks."""
    save_weights(network, folder)
    tokenizer.save(folder, network.body.shape.positions, types=network.body.has_segments)
    labels = {name: _decided(network.task(name).labels, evaluation.tuned.get(name)) for name in config.tasks}
    temperatures = _temperatures(evaluation, dev) if config.calibrate else {}
    save_settings(folder, config, labels, temperatures)
    card = model_card(config, network.body.family, evaluation, train, dev, temperatures)
    (folder / "README.md").write_text(card, encoding="utf-8")


def save_settings(
    folder: Path, config: ModelConfig, labels: Mapping[str, Labels], temperatures: Mapping[str, float]
) -> None:
    """Write weft.json of a folder that has all other files that determine the model's predictions."""
    content = {"format": FORMAT, "recipe": config.content(), "labels": {n: own.content() for n, own in labels.items()}}
    if temperatures:
        content["temperatures"] = dict(temperatures)
    write_settings(folder, content, [*sorted(_weight_files(content)), "tokenizer.json"])


def _weight_files(content: Mapping[str, Any]) -> frozenset[str]:
    """Return the files that hold the weights of a model, from the content of weft.json."""
    recipe = content.get("recipe")
    adapted = isinstance(recipe, dict) and recipe.get("adapter") is not None
    return BODY_FILES | ({ADAPTERS} if adapted else frozenset())


def _decided(labels: Labels, tuned: TunedThresholds | None) -> Labels:
    """Return the labels with the thresholds that were tuned on all dev rows, if any were."""
    return labels if tuned is None else replace(labels, thresholds=tuple(tuned.final.tolist()))


def _temperatures(evaluation: Evaluation, dev: Mapping[str, Dataset]) -> dict[str, float]:
    """Fit the temperature of each task with classes on its dev rows."""
    return {
        name: fit_temperature(kind, evaluation.predictions[name], dataset.targets)
        for name, dataset in dev.items()
        if isinstance(kind := dataset.labels.kind, ProbabilityKind)
    }


def write_settings(folder: Path, content: dict[str, Any], files: Sequence[str]) -> None:
    """Write weft.json, with checksums of all files that determine a model's predictions, and of weft.json itself."""
    sealed = content | {"checksums": {name: sha256(folder / name) for name in files}}
    sealed["own_checksum"] = _digest(sealed)
    (folder / "weft.json").write_text(json.dumps(sealed, indent=2) + "\n", encoding="utf-8")


def read_settings(folder: Path) -> dict[str, Any]:
    """Read weft.json of a model folder; a damaged folder raises UserError."""
    file = folder / "weft.json"
    if not file.is_file():
        raise UserError(f"{folder}: is not a weft model; expected a run folder, or a folder with weft.json")
    content = read_json(file)
    if content.get("format") != FORMAT:
        raise UserError(f"{file}: has format {content.get('format')!r}, this version of weft reads {FORMAT}")
    if content.pop("own_checksum", None) != _digest(content):
        raise UserError(f"{file}: is damaged or was edited; train or export the model again, or get an intact copy")
    _require_sums(folder, content.pop("checksums", None), _weight_files(content))
    return content


def _require_sums(folder: Path, sums: object, weights: frozenset[str]) -> None:
    """Check that every file that determines a model's predictions is in the folder and matches its checksum.

    `weights` are the files with the weights of a model that is not exported.
    """
    file = folder / "weft.json"
    if not isinstance(sums, dict):
        raise UserError(
            f"{file}: `checksums` is {sums!r:.80}, expected a table of file names; train or export the model again"
        )
    graphs = {path.name for path in folder.glob("*.onnx")}
    for name in sorted((graphs or weights) | {"tokenizer.json"}):
        if name not in sums:
            raise UserError(
                f"{file}: has no checksum of {name}; train or export the model again, or get an intact copy"
            )
    for name, expected in sums.items():
        if Path(name).name != name or name == "..":
            raise UserError(f"{file}: `checksums` names {name!r}, which is outside of the folder; get another copy")
        if not (folder / name).is_file() or sha256(folder / name) != expected:
            raise UserError(
                f"{folder / name}: is damaged or belongs to another model; get an intact copy of the folder"
            )


Temperature = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a saved model."""

    config: ModelConfig
    labels: dict[str, Labels]
    temperatures: dict[str, float]
    """temperature of each task's probabilities; empty for a model that is not calibrated"""


def read_model(folder: Path) -> ModelSettings:
    """Read and validate the settings of a model folder."""
    content, file = read_settings(folder), folder / "weft.json"
    config = parse(ModelConfig, content.get("recipe", {}), str(file))
    try:
        labels = TypeAdapter(dict[str, Labels]).validate_python(content.get("labels"))
        temperatures = TypeAdapter(dict[str, Temperature]).validate_python(content.get("temperatures", {}))
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(str(part) for part in found["loc"])
        raise UserError(f"{file}: {place}: found {found['input']!r:.80}; {found['msg']}") from None
    for name, task in config.tasks.items():
        if name not in labels or not labels[name].fits(task.kind):
            raise UserError(f"{file}: the labels of the task {name!r} do not match its recipe")
    if odd := sorted(
        temperatures.keys() - {name for name in config.tasks if isinstance(labels[name].kind, ProbabilityKind)}
    ):
        raise UserError(f"{file}: temperatures.{odd[0]}: there is no such task with classes")
    return ModelSettings(config, {name: labels[name] for name in config.tasks}, temperatures)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def model_folder(folder: Path) -> Path:
    """The `model` folder of a run; any other folder is returned as it is."""
    inside = RunPaths(folder).model
    return inside if (inside / "weft.json").exists() else folder


def model_digest(folder: Path) -> str:
    """Digest that identifies a model: that of weft.json, which has the checksums of all files."""
    settings = model_folder(folder) / "weft.json"
    if not settings.is_file():
        read_settings(model_folder(folder))  # raises an error that names what is missing
    return sha256(settings)
