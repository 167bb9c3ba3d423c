"""Pretraining of a body by masked-language modelling, from the last checkpoint if it was interrupted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.bodies.weights import load_body
from weft.build import read_data
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import tokenize_file
from weft.foundation.atomic import sha256
from weft.foundation.devices import choose_device
from weft.foundation.errors import RunError, UserError
from weft.foundation.randomness import seeded
from weft.foundation.records import JsonRecord
from weft.pretraining.corpus import Corpus, TextColumn
from weft.pretraining.course import MaskedCourse, PretrainConfig
from weft.pretraining.head import load_head, save_body
from weft.pretraining.loop import MaskedLanguageModel, Pretrainer
from weft.pretraining.masking import Masker
from weft.recipes.recipe import Recipe
from weft.runs.folder import RunFolder
from weft.training.resuming import refuse_other_run

PARTS = ("model.safetensors", "pytorch_model.bin")
"""file of a body's weights, the first that exists"""


@dataclass(frozen=True, kw_only=True)
class PretrainResult(JsonRecord):
    """result.json of pretraining."""

    body: str
    """the body that it started from"""
    head: str
    """whether the head was the checkpoint's or a new one"""
    sequences: int
    steps: int
    tokens: int
    seconds: float
    loss_before: float
    """dev loss before the first step"""
    loss: float
    """dev loss at the end"""
    accuracy: float


def columns_of_files(files: Sequence[Path], column: str, folder: Path) -> list[TextColumn]:
    """Return the texts of one column of every file, tokenized for the body in `folder`. Empty texts are skipped."""
    tokenizer = Tokenizer.load(folder)
    found = [tokenize_file(file, [column], tokenizer, on_empty="skip") for file in files]
    return [TextColumn(file, column, np.arange(len(file), dtype=np.int64)) for file in found]


def columns_of_recipe(recipe: Recipe, folder: Path) -> list[TextColumn]:
    """Return all texts of the train rows of a recipe, tokenized for the body in `folder`."""
    train = [task.train for task in read_data(recipe, Tokenizer.load(folder)).values()]
    return [TextColumn(rows.file, column, rows.rows) for rows in train if len(rows) for column in rows.columns]


def pretrain(
    columns: Sequence[TextColumn],
    folder: Path,
    out: Path,
    config: PretrainConfig,
    *,
    steps: int | None = None,
    device: str = "auto",
    resume: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> PretrainResult:
    """Pretrain the body in `folder` on texts and write the run to `out`; its `model` folder is the new body."""
    where = choose_device(device)
    with seeded(config.seed, "pretraining", "start"):
        body = load_body(folder)
        head, is_known = load_head(body, folder)
    if config.max_length > body.shape.positions:
        most = body.shape.positions
        raise UserError(f"--max-length {config.max_length}: the body has {most} positions; choose no more")
    tokenizer = Tokenizer.load(folder)
    corpus = Corpus(columns, tokenizer.template, config.max_length)
    course = MaskedCourse(corpus, Masker.of(tokenizer, body.shape.vocabulary, config.mask), config, steps, where)
    weights = next(folder / name for name in PARTS if (folder / name).exists())
    settings = {
        "pretrain": config.model_dump(mode="json"),
        "steps": course.steps,
        "body": sha256(weights),
        "data": [f"{own.file.key}/{own.column}/{len(own.rows)}" for own in columns],
    }
    if resume:
        refuse_other_run(out, settings)
    run = RunFolder(out, resume=resume)
    try:
        started = "the checkpoint's head" if is_known else "a new head, because the checkpoint has none that is known"
        tell(f"{len(corpus):,} sequences, {len(course.dev):,} of them held out; {course.steps:,} steps; {started}")
        pretrainer = Pretrainer(MaskedLanguageModel(body, head).to(where), course, run, settings, tell)
        progress = pretrainer.fit()

        def write(to: Path) -> None:
            save_body(body, head, to)
            tokenizer.save(to, body.shape.positions, types=body.has_segments)

        run.replace_folder(run.paths.model, write)
        before, after = pretrainer.first, pretrainer.last
        result = PretrainResult(
            body=str(folder),
            head="checkpoint" if is_known else "new",
            sequences=len(corpus),
            steps=progress.step,
            tokens=progress.tokens,
            seconds=round(progress.seconds, 1),
            loss_before=before.loss,
            loss=after.loss,
            accuracy=after.accuracy,
        )
        run.write_json(run.paths.result, result)
        return result
    except OSError as error:
        raise RunError(f"{out}: cannot be written ({error}); free disk space, then continue with --resume") from None
    finally:
        run.close()
