"""`transformers`: the body, and every task on one sequence that is a pooler and a linear layer."""

from pathlib import Path

from weft.export.classifier import misfit, save_bert, save_classifier
from weft.export.outcome import Outcome
from weft.export.source import Source
from weft.export.tokenizer_file import save_tokenizer

BODY = "body"


def write(source: Source, folder: Path) -> Outcome:
    """`body/`, which `AutoModel` opens, and `TASK/`, which `AutoModelForSequenceClassification` does."""
    outcome = Outcome()
    outcome.each(source, folder, refusal, _save_task)
    outcome.require_one("transformers", f"\nthe body alone is {source.folder}: AutoModel opens it as it is")
    body = source.network.body
    (folder / BODY).mkdir()
    save_bert(body, body.shape.layers, folder / BODY)
    save_tokenizer(source.model.tokenizer, folder / BODY, "cross", source.max_length)
    outcome.written["the body"] = f"{BODY}/: AutoModel"
    return outcome


def _save_task(source: Source, name: str, folder: Path) -> str:
    save_classifier(source, name, folder, yes_no_as_two=True)
    return "AutoModelForSequenceClassification"


def refusal(source: Source, name: str) -> str | None:
    """Why `transformers` cannot express a task, and the way that works."""
    if name == BODY:
        return "its folder would be the body's; use --to onnx"
    if source.config(name).reading == "bi":
        return "reads two texts apart, which transformers has no class for; use --to sentence-transformers or onnx"
    reason = misfit(source, name)
    return None if reason is None else f"{reason}, or use --to onnx"
