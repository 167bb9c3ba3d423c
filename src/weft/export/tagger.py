"""Export of a task with tags for `AutoModelForTokenClassification`: one linear layer on the states of all tokens."""

from dataclasses import replace
from pathlib import Path

from weft.bodies.weights import write_config
from weft.export.classifier import out_of_reach, output_layer
from weft.export.source import ExportSource
from weft.export.tokenizer_file import save_tokenizer
from weft.nn.heads.linear import Linear
from weft.tasks.store import body_tensors, save_tensors

OTHER = "use --to onnx, or the model folder as it is"


def refusal(source: ExportSource, name: str) -> str | None:
    """Return why a task with tags is not its family's own token classifier, or None."""
    task, config, family = source.task(name), source.config(name), source.network.body.family
    if task.loss.activation != "softmax":
        return f'loss = "{config.chosen_loss.name}" does not read outputs by softmax; {OTHER}'
    if not family.has_plain_tagger:
        return f"the token classifier of {family.title} has other layers; {OTHER}"
    if not isinstance(task.head, Linear):
        return f'head = "{config.head.name}" is not one linear layer; {OTHER}'
    reason = out_of_reach(source, name)
    return None if reason is None else f"{reason}; {OTHER}"


def save_tagger(source: ExportSource, name: str, folder: Path) -> None:
    """Write the folder of one task, for which `refusal` must return None."""
    task, layers, body = source.task(name), source.layers(name), source.body(name)
    assert layers is not None, "a mix of layers was refused"
    output, labels = output_layer(source, name, task.head.dense, yes_no_as_two=False)
    form = body.family.classifier
    dropout = {} if form is None or form.dropout_key is None else {form.dropout_key: source.model.config.dropout}
    write_config(
        replace(body.shape, layers=layers),
        folder,
        architectures=[f"{body.family.architecture.removesuffix('Model')}ForTokenClassification"],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        **dropout,
    )
    poolers = tuple(f"{pooler}." for pooler in body.family.once.get("pooler", ()))
    tensors = body_tensors(body, layers).items()
    state = {f"{body.family.prefixes[0]}{key}": tensor for key, tensor in tensors if not key.startswith(poolers)}
    state |= {f"classifier.{key}": tensor.detach() for key, tensor in output.named_parameters()}
    save_tensors(state, folder / "model.safetensors")
    save_tokenizer(source, folder, "single")
