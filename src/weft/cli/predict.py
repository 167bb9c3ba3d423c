"""`weft predict`"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.bulk import SHARD_ROWS
from weft.cli import options
from weft.errors import UserError
from weft.leaving import for_terminal

if TYPE_CHECKING:
    from weft.model import Model


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
    executor: options.ExecutorName = "local",
    shard_rows: options.ShardRows = SHARD_ROWS,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="Leave csv cells as they are, even those that a spreadsheet would run.")
    ] = False,
) -> None:
    """Answer for one text, or for a file of them."""
    if (text is None) == (source is None):
        raise UserError("predict: give either a TEXT or --input FILE")
    if output is not None and source is None:
        raise UserError("predict: --output goes with --input")
    if raw_csv and output is None:
        raise UserError("predict: --raw-csv goes with --output")
    options.require_output(output, executor, shard_rows)
    if source is not None and output is not None:
        from weft.api import predict_file
        from weft.cli.bulk import bar

        with bar() as watcher:
            how = {"device": device, "executor": executor}
            rows = predict_file(
                model, task, source, output, **how, shard_rows=shard_rows, raw_csv=raw_csv, listener=watcher
            )
        print(json.dumps({"rows": rows, "output": str(output)}) if as_json else f"{rows:,} answers -> {output}")
        return
    from weft.model import load

    loaded = load(model, device)
    blocks = (
        [[[t] for t in (text, text2) if t is not None]] if source is None else _checked_blocks(loaded, task, source)
    )
    answers = (answer.as_dict() for block in blocks for answer in loaded.predict(task, *block))
    if as_json:
        _print_list(answers)
        return
    for answer in answers:
        print(for_terminal(_line(answer)))


def _checked_blocks(model: "Model", task: str, source: Path) -> Iterable[list[list[str]]]:
    """The texts of a file; a bad row is heard of before the first answer."""
    from weft.bulk.texts import Texts

    texts = Texts(source, model.columns(task), model.layout(task))
    texts.count()
    if note := texts.note():
        typer.echo(f"weft: {note}", err=True)
    return texts.blocks(SHARD_ROWS)


def _print_list(answers: Iterable[dict[str, Any]]) -> None:
    """One JSON list, printed while it is made."""
    between = "["
    for answer in answers:
        print(between, for_terminal(json.dumps(answer, ensure_ascii=False)), sep="", end="")
        between = ", "
    print("[]" if between == "[" else "]")


def _line(answer: dict[str, Any]) -> str:
    if "label" not in answer:
        return f"{answer['score']:.3f}"
    others = "  ".join(f"{label} {p:.3f}" for label, p in answer["probabilities"].items())
    return f"{answer['label']}  ({others})"
