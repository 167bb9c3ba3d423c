"""`weft predict`"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.data.empty import OnEmpty, require_rule
from weft.foundation.errors import UserError
from weft.foundation.sanitize import for_terminal
from weft.inference.bulk import SHARD_ROWS

if TYPE_CHECKING:
    from weft.inference.model import Model


def predict(
    model: options.ModelArgument,
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="Task of the model; omit it with --task or --all.")
    ] = None,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="Text to predict.")] = None,
    text2: Annotated[str | None, typer.Argument(metavar="[TEXT2]", help="The second text of a pair.")] = None,
    some: Annotated[
        str | None, typer.Option("--task", metavar="A,B", help="Several tasks, predicted in one pass.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All tasks of the model, predicted in one pass.")] = False,
    source: Annotated[Path | None, typer.Option("--input", help="A table with columns text (and text2).")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Output file: csv, tsv, jsonl or parquet.")] = None,
    keep_columns: Annotated[
        str | None,
        typer.Option(
            "--keep-columns",
            metavar="A,B",
            help="Columns of the input that pass through to the output: names, all (default) or none.",
        ),
    ] = None,
    on_empty: options.OnEmptyText = None,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
    as_json: options.Json = False,
    executor: options.ExecutorName = "local",
    shard_rows: options.ShardRows = SHARD_ROWS,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="Do not escape csv cells that a spreadsheet would run as formulas.")
    ] = False,
) -> None:
    """Predict for one text or pair, or for every row of a file."""
    tasks, texts = _asked([task, text, text2], some, every)
    rule = require_rule(on_empty, "--on-empty")
    if bool(texts) == (source is not None):
        raise UserError("predict: give either a TEXT or --input FILE")
    if output is not None and source is None:
        raise UserError("predict: --output goes with --input")
    if keep_columns is not None and output is None:
        raise UserError("predict: --keep-columns goes with --output")
    if raw_csv and output is None:
        raise UserError("predict: --raw-csv goes with --output")
    options.require_output(output, executor, shard_rows)
    if source is not None and output is not None:
        from weft.api import predict_file
        from weft.cli.bulk import bar

        with bar() as watcher:
            rows = predict_file(
                model,
                tasks,
                source,
                output,
                keep_columns=_columns(keep_columns),
                on_empty=rule,
                device=device,
                executor=executor,
                shard_rows=shard_rows,
                raw_csv=raw_csv,
                trust_code=trust_code,
                listener=watcher,
            )
        print(json.dumps({"rows": rows, "output": str(output)}) if as_json else f"{rows:,} answers -> {output}")
        return
    from weft.inference.model import load

    loaded = load(model, device, trust_code=trust_code)
    chosen = loaded.choose(tasks)
    answers = _of_file(loaded, chosen, source, rule) if source is not None else _of_texts(loaded, chosen, texts, rule)
    if as_json:
        _print_list(answers)
        return
    for answer in answers:
        line = _line(answer) if len(chosen) == 1 else f"{answer['task']}: {_line(answer)}"
        print(for_terminal(line))


def _asked(given: Sequence[str | None], some: str | None, every: bool) -> tuple[list[str] | None, list[str]]:
    """Return the tasks (None for all) and the texts. With --task or --all, no argument is a task's name."""
    arguments = [argument for argument in given if argument is not None]
    if some is None and not every:
        if not arguments:
            raise UserError("predict: name a TASK, several with --task A,B, or --all")
        return arguments[:1], arguments[1:]
    if some is not None and every:
        raise UserError("predict: --task and --all exclude each other; keep one")
    if len(arguments) > 2:
        raise UserError(
            f"predict: found {len(arguments)} texts; with --task or --all no TASK stands before TEXT and TEXT2"
        )
    return None if some is None else [name.strip() for name in some.split(",")], arguments


def _columns(named: str | None) -> list[str] | None:
    """Parse --keep-columns: `id,date` -> a list; None for all."""
    if named is None or named == "all":
        return None
    return [] if named == "none" else named.split(",")


Answers = Iterator[dict[str, Any]]


def _of_texts(model: "Model", tasks: list[str], texts: list[str], rule: OnEmpty | None) -> Answers:
    """Return the answers for one text or pair; a single task must read all given texts."""
    if len(tasks) == 1:
        answers = {tasks[0]: model.predict(tasks[0], *texts, on_empty=rule)}
    else:
        answers = model.predict_all(*texts, tasks=tasks, on_empty=rule)
    return (answer.as_dict() for answer in answers.values())


def _of_file(model: "Model", tasks: list[str], source: Path, rule: OnEmpty | None) -> Answers:
    """Yield the answers row by row, tasks in order; an invalid row is reported before the first answer."""
    from weft.inference.bulk.texts import BulkTexts
    from weft.inference.bulk.work import Answers

    texts = BulkTexts(source, Answers(tuple(tasks), rule).wishes(model))
    texts.look()
    if note := texts.note():
        typer.echo(f"weft: {note}", err=True)
    for block in texts.blocks(SHARD_ROWS):
        answers = model.answer(block.sides, rule)
        for row in zip(*answers.values(), strict=True):
            yield from (answer.as_dict() for answer in row)


def _print_list(answers: Iterable[dict[str, Any]]) -> None:
    """Print the answers as one JSON list, incrementally."""
    between = "["
    for answer in answers:
        print(between, for_terminal(json.dumps(answer, ensure_ascii=False)), sep="", end="")
        between = ", "
    print("[]" if between == "[" else "]")


def _line(answer: dict[str, Any]) -> str:
    if answer["score"] is None:
        return "no answer (the text is empty)"
    if "label" not in answer:
        return f"{answer['score']:.3f}"
    if "probabilities" not in answer:  # tags
        spans = (f"{own['label']} {own['start']}-{own['end']} {own['score']:.3f}" for own in answer["label"])
        return "  ".join(spans) or "no spans"
    others = "  ".join(f"{label} {p:.3f}" for label, p in answer["probabilities"].items())
    return f"{answer['label']}  ({others})"
