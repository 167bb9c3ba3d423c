"""README.md of one exported task: how to open it, its input and its output."""

from pathlib import Path

from weft.export.source import ExportSource
from weft.kinds.labels import Labels

EXAMPLES = ["A short film about a lighthouse.", "The keeper counts the ships."]
SECOND = ["A film about a tower by the sea.", "Nobody counts anything."]


def save_task_card(source: ExportSource, name: str, folder: Path, *, custom_code: str | None) -> None:
    """Write the README.md of a task; `custom_code` is the reason why it needs custom code, or None."""
    parts = [
        f"---\nlibrary_name: transformers\npipeline_tag: {_pipeline(source, name)}\ntags:\n- weft\n---\n",
        f"# {name}\n",
        f"The task `{name}` of {source.model.config.name}, trained and exported by weft.\n",
        _code_remark(source, custom_code),
        f"## Use\n\n```python\n{_example(source, name, custom_code is not None)}```\n",
        f"## Input\n\n{_input(source, name)}\n",
        f"## Output\n\n{_output(source, name)}\n",
    ]
    if custom_code is not None:
        parts.append(f"## Vectors\n\n{_vectors(source, name)}\n")
    (folder / "README.md").write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _pipeline(source: ExportSource, name: str) -> str:
    kind = source.task(name).labels.kind
    return "token-classification" if kind.auto_class.endswith("TokenClassification") else "text-classification"


def _code_remark(source: ExportSource, custom_code: str | None) -> str:
    if custom_code is None:
        return ""
    return (
        f"This is not the plain sequence classifier of {source.network.body.family.title}: {custom_code}. "
        "The folder holds the code that it needs, `modeling_weft.py`, which imports torch and transformers alone. "
        "transformers runs it if you pass `trust_remote_code=True`; read it first.\n"
    )


def _example(source: ExportSource, name: str, custom_code: bool) -> str:
    labels = _labels(source, name)
    pair = source.config(name).reading != "single"
    trust = ", trust_remote_code=True" if custom_code else ""
    lines = [
        "import torch",
        f"from transformers import {labels.kind.auto_class}, AutoTokenizer",
        "",
        f'folder = "{name}"  # where this folder is, or its name on the hub',
        f"tokenizer = AutoTokenizer.from_pretrained(folder{trust})",
        f"model = {labels.kind.auto_class}.from_pretrained(folder{trust})",
        "",
        f"texts = {_listed(EXAMPLES)}",
        *([f"second_texts = {_listed(SECOND)}"] if pair else []),
        f"inputs = tokenizer(texts, {'second_texts, ' if pair else ''}"
        'padding=True, truncation=True, return_tensors="pt")',
        "with torch.no_grad():",
        "    logits = model(**inputs).logits",
    ]
    return "\n".join([*lines, *labels.kind.reading_code(labels)]) + "\n"


def _listed(texts: list[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"


def _input(source: ExportSource, name: str) -> str:
    reading, longest = source.config(name).reading, source.max_length
    cut = f"`truncation=True` cuts a row to the {longest} tokens that the task was trained with"
    forms = {
        "single": f"One text: `tokenizer(texts)`. {cut}.",
        "cross": f"Two texts in one sequence: `tokenizer(texts, second_texts)`. {cut}, the longer text first.",
        "concat": (
            "Two texts in one sequence without a separator between them: `tokenizer(texts, second_texts)`; "
            f"this folder's tokenizer leaves it out. {cut}, the longer text first."
        ),
        "bi": (
            "Two texts, each encoded by itself: `tokenizer(texts, second_texts)`. This folder's tokenizer writes "
            f"`{_around(source, 'first')} {_around(source, 'second')}`; the model takes the row apart at the token "
            f"types, so pass `token_type_ids`, and cuts each text to {longest} tokens."
        ),
    }
    masks = source.config(name).data.mask
    masked = f"\n\nTexts were masked in training ({', '.join(masks)}): mask yours in the same way." if masks else ""
    return forms[reading] + masked


def _around(source: ExportSource, text: str) -> str:
    """Return a text between its special tokens."""
    template, spelled = source.model.tokenizer.template, source.model.tokenizer.rust.id_to_token
    return " ".join([*map(str, map(spelled, template.before)), text, *map(str, map(spelled, template.after))])


def _output(source: ExportSource, name: str) -> str:
    labels = _labels(source, name)
    return labels.kind.describe_logits(labels)


def _labels(source: ExportSource, name: str) -> Labels:
    """Return a task's labels, with thresholds for the exported probabilities, which are calibrated."""
    return source.task(name).labels.tempered(source.temperature(name))


def _vectors(source: ExportSource, name: str) -> str:
    several = "; tokenize texts one by one, not as pairs" if source.config(name).reading == "bi" else ""
    return (
        "`AutoModel.from_pretrained(folder, trust_remote_code=True)` leaves the head out: its `pooler_output` is the "
        f"vector that the task makes of each sequence{several}."
    )
