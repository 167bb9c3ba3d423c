"""Comparison of an export with its model, on texts that are shipped with weft."""

from pathlib import Path

import numpy as np

from weft.data.config import PRESETS
from weft.data.readings import TokenSequence
from weft.data.tables import read_texts
from weft.data.word_tokens import word_rows
from weft.inference.model import Model
from weft.kinds.tags import SCORE
from weft.tasks.building import build_reader

TOLERANCE = 1e-4
ROWS = 40


def largest_difference(model: Model, other: Model, task: str) -> float:
    """Return the largest difference over all answers and vectors of a task; relative for values larger than 1."""
    rows = real_rows(model, task)
    answers = [m.engine.answers(task, rows) for m in (model, other)]
    if rows[0][0].words is not None:  # compare probabilities: the predicted tags follow from them
        one, two = (np.concatenate([row[:, SCORE] for row in own]) for own in answers)
        return float(np.abs(one - two).max())
    vectors = [m.engine.vectors(task, [sequence for row in rows for sequence in row]) for m in (model, other)]
    return max(float((np.abs(a - b) / np.maximum(1, np.abs(a))).max()) for a, b in (answers, vectors))


def real_rows(model: Model, task: str) -> list[list[TokenSequence]]:
    """Build rows of a task from the starter pairs, with lengths from one word to more than the maximum length."""
    texts = read_texts(Path(str(PRESETS["starter/similarity"].dev)), ["text", "text2"])
    sides = [side[:ROWS] for side in texts]
    for side, other in zip(sides, reversed(texts), strict=True):
        side += [side[0].split()[0], " ".join(side[: ROWS // 2]), " ".join(other)]
    reader = build_reader(model.config, task, model.tokenizer)
    if reader.split is not None:
        return word_rows(sides[0], model.tokenizer, reader)
    ids = [[np.array(i, dtype=np.int32) for i in model.tokenizer.encode(side)] for side in sides]
    return [reader.sequences(first, second) for first, second in zip(*ids, strict=True)]
