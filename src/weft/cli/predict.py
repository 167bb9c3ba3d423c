"""`weft predict`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli import options
from weft.errors import UserError


def predict(
    model: options.ModelArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="One of the model's tasks.")],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="A text to answer for.")] = None,
    text2: Annotated[str | None, typer.Argument(metavar="[TEXT2]", help="The second text of a pair.")] = None,
    source: Annotated[Path | None, typer.Option("--input", help="A table with columns text (and text2).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Where the answers go: csv, tsv, jsonl, parquet.")
    ] = None,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Answer for one text, or for a file of them."""
    if (text is None) == (source is None):
        raise UserError("predict: give either a TEXT or --input FILE")
    if output is not None and source is None:
        raise UserError("predict: --output goes with --input")
    from weft.data.tables import read_texts, require_writable, write_table
    from weft.model import load

    if output is not None:
        require_writable(output)
    loaded = load(model, device)
    if text is not None:
        predictions = loaded.predict(task, [text], None if text2 is None else [text2])
    else:
        assert source is not None
        columns = loaded.columns(task)
        sides = read_texts(source, columns)
        predictions = loaded.predict(task, sides[0], sides[1] if len(sides) > 1 else None)
    answers = [prediction.as_dict() for prediction in predictions]
    if output is not None:
        write_table(output, [_flat(answer) for answer in answers])
        return
    if as_json:
        print(json.dumps(answers, ensure_ascii=False))
        return
    for answer in answers:
        print(_line(answer))


def _flat(answer: dict[str, Any]) -> dict[str, Any]:
    """A row of a table: probabilities in columns of their own."""
    probabilities = answer.get("probabilities") or {}
    plain = {key: value for key, value in answer.items() if key != "probabilities"}
    return plain | {f"p_{label}": p for label, p in probabilities.items()}


def _line(answer: dict[str, Any]) -> str:
    if "label" not in answer:
        return f"{answer['score']:.3f}"
    others = "  ".join(f"{label} {p:.3f}" for label, p in answer["probabilities"].items())
    return f"{answer['label']}  ({others})"
