"""Export of a task for `AutoModelForSequenceClassification`: the body's own pooler, then one linear layer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.bodies.weights import write_config
from weft.export.source import ExportSource
from weft.export.tokenizer_file import save_tokenizer
from weft.nn.heads.linear import Linear
from weft.nn.pooling.pooler import Pooler
from weft.tasks.store import body_tensors, save_tensors

PROBLEMS = {
    "softmax": "single_label_classification",
    "sigmoid": "multi_label_classification",
    "identity": "regression",
}
"""activation -> the `problem_type` of `transformers`"""


def misfit(source: ExportSource, name: str) -> str | None:
    """Return why a task is not its family's own classifier (pooler and linear layer on one sequence), or None."""
    task, config, family = source.task(name), source.config(name), source.network.body.family
    if config.reading == "bi":
        return 'reading = "bi" encodes the two texts separately'
    if family.classifier is None:
        return f"the classifier of {family.title} has other layers"
    if not isinstance(task.pooling, Pooler):
        return f'pooling = "{config.pooling.name}" is not {family.title}\'s own'
    if not isinstance(task.head, Linear):
        return f'head = "{config.head.name}" is not one linear layer'
    return unreadable(source, name)


def unreadable(source: ExportSource, name: str) -> str | None:
    """Return why other libraries cannot read a task's states or outputs, whatever its pooling and head, or None."""
    if (reason := out_of_reach(source, name)) is not None:
        return reason
    if source.task(name).loss.activation is None:
        loss = source.config(name).chosen_loss.name
        return f'loss = "{loss}" reads outputs neither by softmax nor by sigmoid'
    return None


def out_of_reach(source: ExportSource, name: str) -> str | None:
    """Return why the states that a task reads are not the last hidden states of a body, or None."""
    layers, body = source.layers(name), source.network.body
    if layers is None:
        return 'layer = "mix" reads all layers'
    if not body.family.can_cut(layers, body.shape):
        return f"layer = {layers} is not the last state of a shorter {body.family.title}"
    return None


def save_body(body: Body, layers: int, folder: Path) -> None:
    """Write config.json and model.safetensors of a body's first `layers` layers."""
    write_config(replace(body.shape, layers=layers), folder)
    save_tensors(body_tensors(body, layers), folder / "model.safetensors")


def save_classifier(source: ExportSource, name: str, folder: Path, *, yes_no_as_two: bool, **settings: Any) -> None:
    """Write the folder of one task, for which `misfit` must return None."""
    task, layers, body = source.task(name), source.layers(name), source.body(name)
    form = body.family.classifier
    assert layers is not None, "a mix of layers was refused"
    assert form is not None, "families without such a classifier were refused"
    output, labels = output_layer(source, name, task.head.dense, yes_no_as_two=yes_no_as_two)
    doubled = len(labels) > task.loss.outputs
    dropout = {} if form.dropout_key is None else {form.dropout_key: source.model.config.dropout}
    write_config(
        replace(body.shape, layers=layers),
        folder,
        architectures=[form.architecture],
        **dropout,
        **answer_settings("softmax" if doubled else str(task.loss.activation), labels),
        **settings,
    )
    (pooler,) = body.family.once["pooler"]
    state = {f"{form.prefix}{key}": tensor for key, tensor in body_tensors(body, layers).items()}
    for kind in ("weight", "bias"):
        state[f"{form.pooler}.{kind}"] = state.pop(f"{form.prefix}{pooler}.{kind}")
    state |= {f"{form.output}.{key}": tensor.detach() for key, tensor in output.named_parameters()}
    save_tensors(state, folder / "model.safetensors")
    save_tokenizer(source, folder, source.config(name).reading)


def answer_settings(function: str, labels: Sequence[str]) -> dict[str, Any]:
    """Return the entries of config.json that describe the outputs: problem type and label names."""
    return {
        "problem_type": PROBLEMS[function],
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def output_layer(
    source: ExportSource, name: str, last: nn.Module | Tensor, *, yes_no_as_two: bool
) -> tuple[nn.Linear, list[str]]:
    """Return a head's `last` layer in the form that other libraries read, and the names of its outputs.

    A regression returns values in the label's own units. Two classes that weft represents by one logit o become the
    logits (0, o) if `yes_no_as_two`: their softmax is the sigmoid of o. The logits of a calibrated task are divided by
    its temperature.
    """
    assert isinstance(last, nn.Linear), "a head's last layer is linear"
    labels, temperature = source.task(name).labels, source.temperature(name)
    weight, bias = (tensor.detach() / temperature for tensor in (last.weight, last.bias))
    nothing = torch.zeros_like(weight)  # only the bias is shifted by the lower end of the range
    weight, bias = labels.in_units(weight) - labels.in_units(nothing), labels.in_units(bias)
    names = list(labels.names) or [name]
    if len(weight) == len(names):
        return _linear(weight, bias), names
    if yes_no_as_two:
        doubled = (torch.cat([torch.zeros_like(tensor), tensor]) for tensor in (weight, bias))
        return _linear(*doubled), names
    return _linear(weight, bias), [names[1]]


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer
