"""Arguments that several commands share."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.foundation.errors import UserError
from weft.inference.bulk import SHARD_ROWS

if TYPE_CHECKING:
    from weft.tasks.config import ModelConfig

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe file, or a shipped recipe's name.")]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A run folder, the model folder inside it, or an ONNX export of it.")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder with the files of presets such as sst5.")]
RunOut = Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run; made by this command.")]
Body = Annotated[str | None, typer.Option("--body", help="Start from this body instead of the recipe's.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe; may be repeated."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Replace the recipe's seed.")]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="steps=N", help="Scale the recipe to N steps and evaluate at the end only."),
]
Split = Annotated[str | None, typer.Option("--split", help="train, dev (default) or test.")]
TaskFile = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="TASK=FILE", help="Score a task on this file instead."),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
ExecutorName = Annotated[str, typer.Option("--executor", help="Where shards are processed: local or ray (a cluster).")]
ShardRows = Annotated[
    int,
    typer.Option("--shard-rows", metavar="N", help="Rows per shard, processed and saved together."),
]
OnEmptyText = Annotated[
    str | None,
    typer.Option(
        "--on-empty",
        metavar="RULE",
        help="Empty texts: error, skip (no answer) or keep (answered). Defaults to the rule of the task's data.",
    ),
]
TrustCode = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        help="Import the code that the recipe or model names by `use`. Read it first; WEFT_TRUST_CODE=1 does the same.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]


def require_output(output: Path | None, executor: str, shard_rows: int) -> None:
    """Reject --executor and --shard-rows without --output, where they would have no effect."""
    if output is None and (executor, shard_rows) != ("local", SHARD_ROWS):
        raise UserError("--executor and --shard-rows go with --output")


def require_folder(path: Path | None) -> None:
    """Raise an error if --data-dir is not a folder; called before anything else is read."""
    if path is not None and not path.is_dir():
        raise UserError(f"--data-dir {path}: there is no such folder")


def unused_data_dir(recipe: "ModelConfig", data_dir: Path | None) -> list[str]:
    """Return a note if --data-dir has no effect."""
    if data_dir is None or any(task.data.preset is not None for task in recipe.tasks.values()):
        return []
    return [f"--data-dir {data_dir}: has no effect, because no task's data is a preset that is looked for there"]


def require_split(split: str) -> None:
    if split not in ("train", "dev", "test"):
        raise UserError(f"--split {split}: expected train, dev or test")


def split_or_files(split: str | None, file: list[str] | None) -> tuple[str, dict[str, Path]]:
    """Parse --split and --file, of which one may be given. --split defaults to dev."""
    if split is not None and file:
        raise UserError(f"--split {split}: goes with the recipe's own files; --file names others. Keep one of them")
    require_split(split or "dev")
    files = {}
    for item in file or []:
        task, equals, path = item.partition("=")
        if not equals:
            raise UserError(f"--file {item}: expected TASK=FILE, such as --file sentiment=reviews.csv")
        files[task] = Path(path)
    return split or "dev", files


def budget_steps(text: str | None) -> int | None:
    """Parse --budget: `steps=300` -> 300."""
    if text is None:
        return None
    key, _, number = text.partition("=")
    if key != "steps" or not number.isdigit() or int(number) < 1:
        raise UserError(f"--budget {text}: expected steps=N with N at least 1, such as --budget steps=300")
    return int(number)


def seed_numbers(text: str) -> tuple[int, ...]:
    """Return the seeds of `--seeds 1,2,3`, each once."""
    if not all(seed.strip().isdigit() for seed in text.split(",")):
        raise UserError(f"--seeds {text}: expected numbers with commas between them, such as 1,2,3")
    return tuple(dict.fromkeys(int(seed) for seed in text.split(",")))


def time_seconds(text: str | None) -> float | None:
    """Parse --max-time (`90s`, `30m` or `2h`) and return seconds."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if found is None or float(found[1]) <= 0:
        raise UserError(f"--max-time {text}: expected a number with a unit, such as 90s, 30m or 2h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
