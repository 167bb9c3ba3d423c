"""Gender bias probe: measure how predictions change when the gendered words of a text are swapped.

A model that gives "she was brilliant" another sentiment than "he was brilliant" uses a feature that it should not use.
The probe swaps such words in dev texts and compares the predictions. It detects one bias, in English, and only for the
words listed here.
"""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.foundation.errors import UserError
from weft.inference.model import Model
from weft.inference.prediction import Prediction

SHOWN = 5
PAIRS = """he she|himself herself|man woman|men women|boy girl|boys girls|father mother|fathers mothers|dad mom
daddy mommy|son daughter|sons daughters|brother sister|brothers sisters|husband wife|husbands wives|uncle aunt
uncles aunts|nephew niece|king queen|kings queens|prince princess|actor actress|actors actresses|waiter waitress
hero heroine|gentleman lady|gentlemen ladies|grandfather grandmother|grandpa grandma|boyfriend girlfriend|male female
males females|mr mrs|sir madam|guy gal|guys gals|lad lass|widower widow|host hostess|bride groom|masculine feminine"""
SWAPS = {
    one: other for pair in PAIRS.replace("\n", "|").split("|") for one, other in (pair.split(), pair.split()[::-1])
} | {"his": "her", "him": "her", "hers": "his", "ms": "mr", "mum": "dad"}
WORD = re.compile(r"[A-Za-z]+")


def swap(text: str) -> str:
    """Return the text with every gendered word replaced by its counterpart. Capitalization is preserved."""

    def other(match: re.Match[str]) -> str:
        word = match[0]
        lower = word.lower()
        if lower == "her":  # "her book" is "his book", but "saw her" is "saw him"
            found = "his" if re.match(r"\s+[A-Za-z]", text[match.end() :]) else "him"
        else:
            found = SWAPS.get(lower, lower)
        if found == lower:
            return word
        if word.isupper() and len(word) > 1:
            return found.upper()
        return found.capitalize() if word[0].isupper() else found

    return WORD.sub(other, text)


@dataclass(frozen=True)
class Moved:
    texts: tuple[str, ...]
    swapped: tuple[str, ...]
    before: str
    after: str
    move: float


@dataclass(frozen=True)
class TaskProbe:
    rows: int
    """number of rows with gendered words"""
    of: int
    changed: float | None
    """fraction of those rows whose predicted class changes; None for regression"""
    mean_move: float
    largest_move: float
    examples: list[Moved]


def probe(model: Model, split: str = "dev", data_dir: Path | None = None) -> dict[str, Any]:
    """Return the effect of swapping on the predictions of every task, as plain values."""
    found = {name: _task(model, name, split, data_dir) for name in model.tasks}
    if not any(task.rows for task in found.values()):
        raise UserError(f"probe: no text of the {split} rows has a gendered word that weft knows; nothing can be said")
    return {"split": split, "tasks": {name: asdict(task) for name, task in found.items()}}


def _task(model: Model, name: str, split: str, data_dir: Path | None) -> TaskProbe:
    texts = model.texts(name, split, data_dir)
    swapped = [tuple(swap(text) for text in row) for row in texts]
    rows = [i for i, (one, two) in enumerate(zip(texts, swapped, strict=True)) if one != two]
    if not rows:
        return TaskProbe(0, len(texts), None, 0.0, 0.0, [])
    before, after = (_answers(model, name, [source[i] for i in rows]) for source in (texts, swapped))
    moves = _moves(model, name, before, after)
    changed = None
    if before[0].label is not None:
        outcome = model.labels[name].kind.outcome
        changed = float(np.mean([outcome(a.label) != outcome(b.label) for a, b in zip(before, after, strict=True)]))
    worst = np.argsort(-moves, kind="stable")[:SHOWN]
    examples = [
        Moved(texts[rows[k]], swapped[rows[k]], _shown(before[k]), _shown(after[k]), float(moves[k])) for k in worst
    ]
    return TaskProbe(len(rows), len(texts), changed, float(moves.mean()), float(moves.max()), examples)


def _answers(model: Model, name: str, rows: list[tuple[str, ...]]) -> list[Prediction]:
    sides = [list(side) for side in zip(*rows, strict=True)]
    return model.predict(name, sides[0], sides[1] if len(sides) > 1 else None)


def _moves(model: Model, name: str, before: list[Prediction], after: list[Prediction]) -> NDArray[np.float64]:
    """Return [n] the change of each prediction."""
    labels = model.labels[name]
    one, two = (np.array([_values(answer) for answer in side]) for side in (before, after))
    return labels.kind.moves(labels, one, two)


def _values(answer: Prediction) -> float | list[float]:
    return answer.score if answer.probabilities is None else list(answer.probabilities.values())


def _shown(prediction: Prediction) -> str:
    if prediction.label is None:
        return f"{prediction.score:.2f}"
    label = prediction.label if isinstance(prediction.label, str) else ", ".join(map(_name, prediction.label)) or "none"
    return f"{label} ({prediction.score:.2f})"


def _name(label: str | dict[str, Any]) -> str:
    """Return a label of several, or the label of a span."""
    return label if isinstance(label, str) else str(label["label"])
