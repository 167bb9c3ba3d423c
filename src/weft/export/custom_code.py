"""Export of a task as a model with custom code, in the hub's convention: `modeling_weft.py` beside the weights."""

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor, nn

from weft.bodies.weights import hugging_face_config
from weft.export.source import ExportSource, write_json
from weft.export.tokenizer_file import save_tokenizer
from weft.kinds.labels import Labels
from weft.losses.binary_cross_entropy import BinaryCrossEntropy
from weft.tasks.store import FOR_TRANSFORMERS, body_tensors

CODE = "modeling_weft"
CLASSES = {
    "AutoConfig": f"{CODE}.WeftConfig",
    "AutoModel": f"{CODE}.WeftModel",
    "AutoModelForSequenceClassification": f"{CODE}.WeftForSequenceClassification",
}
"""auto class of the library -> the class that opens the folder"""


def save_custom(source: ExportSource, name: str, folder: Path, **settings: Any) -> None:
    """Write the folder of one task, whatever its parts; `settings` are more entries of config.json, such as labels."""
    config = source.config(name)
    shape = replace(source.network.body.shape, layers=_kept_layers(source, name))
    content = {
        "architectures": [CLASSES["AutoModelForSequenceClassification"].removeprefix(f"{CODE}.")],
        "auto_map": CLASSES,
        "model_type": "weft",
        "body_config": hugging_face_config(shape),
        "weft_task": task_settings(source, name),
    }
    write_json(folder / "config.json", content | settings)
    save_file(task_tensors(source, name, shape.layers), folder / "model.safetensors", metadata=FOR_TRANSFORMERS)
    code = resources.files("weft.export").joinpath(f"{CODE}.py").read_text(encoding="utf-8")
    (folder / f"{CODE}.py").write_text(code, encoding="utf-8")
    # The tokenizer puts both texts of a bi task into one row; the model splits the row and truncates each text.
    # A row of twice the length has as much of each text as the model keeps, since the longer text is truncated first.
    texts = 2 if config.reading == "bi" else 1
    save_tokenizer(source, folder, config.reading, texts * source.max_length, types=True)


def _kept_layers(source: ExportSource, name: str) -> int:
    """Return the number of layers to export: all, unless the layers above the one that a task reads can be omitted."""
    layers, body = source.layers(name), source.network.body
    return body.shape.layers if layers is None or not body.family.can_cut(layers, body.shape) else layers


def task_settings(source: ExportSource, name: str) -> dict[str, Any]:
    """Return the settings that `modeling_weft.py` needs: the recipe's tables, and values derived from the labels."""
    task, config, body, layers = source.task(name), source.config(name), source.network.body, source.layers(name)
    labels: Labels = task.labels
    return {
        "name": name,
        "reading": config.reading,
        "max_length": source.max_length,
        "sep": source.model.tokenizer.template.after[-1],
        "types": body.has_segments,
        "body_options": {"add_pooling_layer": False} if body.family.has_pooler else {},
        "layer": "mix" if layers is None else None if layers == _kept_layers(source, name) else layers,
        "pooling": config.pooling.model_dump(mode="json"),
        "head": config.head.model_dump(mode="json"),
        "outputs": task.loss.outputs,
        "dropout": source.model.config.dropout,
        "loss": config.chosen_loss.name,
        "gives_probability": isinstance(task.loss, BinaryCrossEntropy) and task.loss.reads_probabilities,
        "range": None if labels.limits is None else list(labels.limits),
        "scaled": labels.scaled,
        "temperature": source.temperature(name),
    }


def task_tensors(source: ExportSource, name: str, layers: int) -> dict[str, Tensor]:
    """Return the body's tensors under Hugging Face's names, and those of the task under weft's names."""
    task = source.task(name)
    body = body_tensors(source.body(name), layers)
    tensors = {f"body.{key}": tensor for key, tensor in body.items() if not key.startswith("pooler.")}
    parts: dict[str, nn.Module] = {"layer": task.layer, "pooling": task.pooling, "head": task.head}
    for part, module in parts.items():
        tensors |= {f"{part}.{key}": tensor.detach().contiguous() for key, tensor in module.state_dict().items()}
    return tensors
