"""Export to `transformers`: the body and every task, by the library's own class if exact, else with custom code."""

from pathlib import Path

from weft.export import tagger
from weft.export.classifier import answer_settings, misfit, save_body, save_classifier
from weft.export.custom_code import save_custom
from weft.export.outcome import Outcome
from weft.export.source import ExportSource, own_code
from weft.export.task_card import save_task_card
from weft.export.tokenizer_file import save_tokenizer

BODY = "body"


def write(source: ExportSource, folder: Path) -> Outcome:
    """Write `TASK/`, which `AutoModelForSequenceClassification` or, for tags, `AutoModelForTokenClassification` opens.

    `AutoModel` opens `body/`.
    """
    outcome = Outcome()
    outcome.each(source, folder, _save_task, _refusal)
    body, place = source.network.body, body_folder(source)
    (folder / place).mkdir()
    save_body(body, body.shape.layers, folder / place)
    save_tokenizer(source, folder / place, "cross")
    outcome.written["the body"] = f"{place}/: AutoModel"
    return outcome


def body_folder(source: ExportSource) -> str:
    """Return the folder name of the body: `body`, with a suffix if a task has that name."""
    place = BODY
    while place in source.tasks:
        place += "-alone"
    return place


def _refusal(source: ExportSource, name: str) -> str | None:
    reason = own_code(source, name)
    if reason is None and source.task(name).pooling.keeps_tokens:
        return tagger.refusal(source, name)
    return reason


def _save_task(source: ExportSource, name: str, folder: Path) -> str:
    if source.task(name).pooling.keeps_tokens:
        tagger.save_tagger(source, name, folder)
        save_task_card(source, name, folder, custom_code=None)
        return source.task(name).labels.kind.auto_class
    reason, labels = misfit(source, name), source.task(name).labels
    if reason is None:
        save_classifier(source, name, folder, yes_no_as_two=True)
    else:
        save_custom(source, name, folder, **answer_settings(labels.kind.activation, labels.names or [name]))
    save_task_card(source, name, folder, custom_code=reason)
    trust = "" if reason is None else f" with trust_remote_code=True ({reason})"
    return f"{labels.kind.auto_class}{trust}"
