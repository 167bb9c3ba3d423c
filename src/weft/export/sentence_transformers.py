"""Export to `sentence-transformers`: bi tasks return vectors, cross and concat tasks score pairs."""

from pathlib import Path
from typing import Any

from torch import nn

from weft.export.classifier import misfit, out_of_reach, output_layer, save_body, save_classifier, unreadable
from weft.export.outcome import Outcome
from weft.export.source import ExportSource, other_cut, own_code, unmergeable, write_json
from weft.export.tokenizer_file import save_tokenizer
from weft.nn.heads.cosine import Cosine, ReluCosine, ScaledCosine
from weft.nn.heads.linear import Linear
from weft.nn.heads.mlp import Mlp
from weft.nn.heads.vectors import UnitVectors
from weft.nn.pooling.cls import Cls
from weft.nn.pooling.max import Max
from weft.nn.pooling.mean import Mean
from weft.nn.pooling.pooler import Pooler
from weft.tasks.store import save_tensors

MODES = {Cls: "cls_token", Pooler: "cls_token", Mean: "mean_tokens", Max: "max_tokens"}
"""weft's poolings -> the library's; BERT's pooler is the first token followed by a dense layer"""
ACTIVATIONS = {"identity": nn.Identity, "softmax": nn.Identity, "sigmoid": nn.Sigmoid}
"""activation of `predict`: several classes stay logits, and its `apply_softmax=True` turns them into probabilities"""
OTHER_TARGETS = "use --to transformers or onnx"
"""both support every task"""
DenseLayers = list[tuple[nn.Linear, type[nn.Module]]]
"""linear layers, each with its activation"""


def write(source: ExportSource, folder: Path) -> Outcome:
    """Write `TASK/` for each task that reads two texts."""
    outcome = Outcome()
    outcome.each(source, folder, _save_task, refusal)
    outcome.require_one("sentence-transformers")
    return outcome


def _save_task(source: ExportSource, name: str, folder: Path) -> str:
    if source.config(name).reading == "bi":
        save_sentence_transformer(source, name, folder)
        return f"SentenceTransformer{_left_behind(source, name)}"
    save_cross_encoder(source, name, folder)
    return "CrossEncoder"


def refusal(source: ExportSource, name: str) -> str | None:
    """Return why the library cannot express a task and what to use instead, or None if it can."""
    task, config = source.task(name), source.config(name)
    if config.reading == "single":
        return f"reads one text, and this library is for pairs; {OTHER_TARGETS}"
    read = ("pooling",) if config.reading == "bi" else ("pooling", "head", "loss")  # a bi task returns only vectors
    if (reason := own_code(source, name, read) or unmergeable(source, name) or other_cut(source, name)) is not None:
        return reason
    if type(task.pooling) not in MODES:
        return f'pooling = "{config.pooling.name}" is not one of the library\'s; {OTHER_TARGETS}'
    if config.reading != "bi" and not isinstance(task.head, Linear | Mlp):
        return f'head = "{config.head.name}" is not made of plain layers; {OTHER_TARGETS}'
    reason = out_of_reach(source, name) if config.reading == "bi" else unreadable(source, name)
    return None if reason is None else f"{reason}; {OTHER_TARGETS}"


def save_sentence_transformer(source: ExportSource, name: str, folder: Path) -> None:
    """Write body and pooling. The head is omitted: this class returns vectors, compared by cosine similarity."""
    angle = isinstance(source.task(name).head, Cosine | ReluCosine | ScaledCosine | UnitVectors)
    settings = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine" if angle else None}
    _save_modules(source, name, folder, [], settings)


def save_cross_encoder(source: ExportSource, name: str, folder: Path) -> None:
    """Write a plain sequence classifier where possible, which any version opens; otherwise a sequence of modules."""
    task = source.task(name)
    assert task.loss.activation is not None, "losses with a rule of their own were refused"
    activation = {"activation_fn": _path(ACTIVATIONS[task.loss.activation])}
    if misfit(source, name) is None:
        save_classifier(source, name, folder, yes_no_as_two=False, sentence_transformers=activation)
        return
    *hidden, last = [layer for layer in task.head.modules() if isinstance(layer, nn.Linear)]
    output, _ = output_layer(source, name, last, yes_no_as_two=False)
    dense: DenseLayers = [*((layer, nn.ReLU) for layer in hidden), (output, nn.Identity)]
    _save_modules(source, name, folder, dense, {"model_type": "CrossEncoder", **activation})


def _save_modules(source: ExportSource, name: str, folder: Path, head: DenseLayers, settings: dict[str, Any]) -> None:
    """Write body, pooling and dense layers in the library's folder layout; the last layer of `head` returns scores."""
    task, layers = source.task(name), source.layers(name)
    assert layers is not None, "a mix of layers was refused"
    save_body(source.body(name), layers, folder)
    save_tokenizer(source, folder, source.config(name).reading)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": source.max_length, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", settings)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    width = source.network.body.shape.width
    mode = {f"pooling_mode_{known}": known == MODES[type(task.pooling)] for known in dict.fromkeys(MODES.values())}
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **mode})
    pooler: DenseLayers = [(task.pooling.dense, nn.Tanh)] if isinstance(task.pooling, Pooler) else []
    for layer, activation in [*pooler, *head]:
        place = f"{len(modules)}_Dense"
        _save_dense(layer, activation, folder / place, scores=bool(head) and layer is head[-1][0])
        modules.append((place, "Dense"))
    names = ["idx", "name", "path", "type"]
    rows = [(i, str(i), path, f"sentence_transformers.models.{kind}") for i, (path, kind) in enumerate(modules)]
    write_json(folder / "modules.json", [dict(zip(names, row, strict=True)) for row in rows])


def _save_dense(layer: nn.Linear, activation: type[nn.Module], folder: Path, *, scores: bool) -> None:
    folder.mkdir()
    config = {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": True,
        "activation_function": _path(activation),
    }
    if scores:
        config |= {"module_input_name": "sentence_embedding", "module_output_name": "scores"}
    write_json(folder / "config.json", config)
    state = {f"linear.{key}": tensor.detach().contiguous() for key, tensor in layer.named_parameters()}
    save_tensors(state, folder / "model.safetensors")


def _path(activation: type[nn.Module]) -> str:
    return f"{activation.__module__}.{activation.__name__}"


def _left_behind(source: ExportSource, name: str) -> str:
    """Return a remark on a head that is not exported; empty for cosines, which the library computes itself."""
    if isinstance(source.task(name).head, Cosine | UnitVectors):
        return ""
    targets = "onnx" if own_code(source, name) else "transformers or onnx"
    return f" (vectors alone; its {source.config(name).head.name} head comes along with --to {targets})"
