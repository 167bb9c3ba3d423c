"""`sentence-transformers`: bi tasks give vectors, cross and concat tasks score pairs."""

from pathlib import Path
from typing import Any

from torch import nn

from weft.export.classifier import misfit, out_of_reach, output_layer, save_body, save_classifier, unreadable
from weft.export.outcome import Outcome
from weft.export.source import ExportSource, own_code, write_json
from weft.export.tokenizer_file import save_tokenizer
from weft.nn.heads.cosine import Cosine, ReluCosine, ScaledCosine
from weft.nn.heads.linear import Linear
from weft.nn.heads.mlp import Mlp
from weft.nn.pooling.cls import Cls
from weft.nn.pooling.max import Max
from weft.nn.pooling.mean import Mean
from weft.nn.pooling.pooler import Pooler
from weft.tasks.store import save_tensors

MODES = {Cls: "cls_token", Pooler: "cls_token", Mean: "mean_tokens", Max: "max_tokens"}
"""our poolings -> the library's; BERT's pooler is its first token with a dense layer after it"""
ACTIVATIONS = {"identity": nn.Identity, "softmax": nn.Identity, "sigmoid": nn.Sigmoid}
"""what `predict` puts on outputs: several classes stay logits, and its `apply_softmax=True` makes them probabilities"""
OTHER_TARGETS = "use --to transformers or onnx"
"""both write every task"""
DenseLayers = list[tuple[nn.Linear, type[nn.Module]]]
"""linear layers and what comes after each"""


def write(source: ExportSource, folder: Path) -> Outcome:
    """`TASK/` for each task that reads two texts."""
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
    """Why the library cannot express a task, and the way that works."""
    task, config = source.task(name), source.config(name)
    if config.reading == "single":
        return f"reads one text, and this library is for pairs; {OTHER_TARGETS}"
    read = ("pooling",) if config.reading == "bi" else ("pooling", "head", "loss")  # a bi task gives vectors alone
    if (code := own_code(source, name, read)) is not None:
        return code
    if type(task.pooling) not in MODES:
        return f'pooling = "{config.pooling.name}" is not one of the library\'s; {OTHER_TARGETS}'
    if config.reading != "bi" and not isinstance(task.head, Linear | Mlp):
        return f'head = "{config.head.name}" is not made of plain layers; {OTHER_TARGETS}'
    reason = out_of_reach(source, name) if config.reading == "bi" else unreadable(source, name)
    return None if reason is None else f"{reason}; {OTHER_TARGETS}"


def save_sentence_transformer(source: ExportSource, name: str, folder: Path) -> None:
    """Body and pooling. The head stays behind: this class gives vectors, and compares them by an angle."""
    angle = isinstance(source.task(name).head, Cosine | ReluCosine | ScaledCosine)
    settings = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine" if angle else None}
    _save_modules(source, name, folder, [], settings)


def save_cross_encoder(source: ExportSource, name: str, folder: Path) -> None:
    """A plain sequence classifier where it can be one, which any version opens; modules in a row where not."""
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
    """Body, pooling and dense layers, each where the library looks for it; the last of `head` gives scores."""
    task, layers = source.task(name), source.layers(name)
    assert layers is not None, "a mix of layers was refused"
    save_body(source.network.body, layers, folder)
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
    """A cosine is what the library computes by itself; any other head is lost."""
    if isinstance(source.task(name).head, Cosine):
        return ""
    targets = "onnx" if own_code(source, name) else "transformers or onnx"
    return f" (vectors alone; its {source.config(name).head.name} head comes along with --to {targets})"
