"""Export to `transformers`: the body and every task, by the library's own class if exact, else with custom code."""

from pathlib import Path

from weft.bodies.body import Body
from weft.export import tagger
from weft.export.classifier import answer_settings, misfit, save_body, save_classifier
from weft.export.custom_code import save_custom
from weft.export.outcome import Outcome
from weft.export.source import ExportSource, other_cut, own_code, unmergeable
from weft.export.task_card import save_task_card
from weft.export.tokenizer_file import save_tokenizer

BODY = "body"


def write(source: ExportSource, folder: Path) -> Outcome:
    """Write `TASK/`, which `AutoModelForSequenceClassification` or, for tags, `AutoModelForTokenClassification` opens.

    `AutoModel` opens `body/`.
    """
    outcome = Outcome()
    outcome.each(source, folder, _save_task, refusal)
    body, place = source.shared_merged().body, body_folder(source)
    (folder / place).mkdir()
    save_body(body, body.shape.layers, folder / place)
    save_tokenizer(source, folder / place, "cross")
    outcome.written["the body"] = f"{place}/: AutoModel{_without(source, body)}"
    return outcome


def refusal(source: ExportSource, name: str) -> str | None:
    """Return why a task cannot be written and what to use instead, or None if it can."""
    reason = own_code(source, name) or unmergeable(source, name) or other_cut(source, name)
    if reason is None and source.task(name).pooling.keeps_tokens:
        return tagger.refusal(source, name)
    return reason


def _without(source: ExportSource, body: Body) -> str:
    """Return a remark if the exported body is not what the tasks read."""
    plain = body is source.network.body and source.model.config.adapter is not None
    return ", without adapters" if plain else ""


def body_folder(source: ExportSource) -> str:
    """Return the folder name of the body: `body`, with a suffix if a task has that name."""
    place = BODY
    while place in source.tasks:
        place += "-alone"
    return place


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
