"""Tags: one label for each word of a text."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.foundation.errors import UserError
from weft.kinds import entities
from weft.kinds.base import Answer, Kind, Seen, WordSplit
from weft.kinds.classification import Classification
from weft.kinds.forms import Form
from weft.kinds.labels import Labels
from weft.kinds.spans import OUTSIDE, PREFIXED, bio_tags, scheme_of, spans_of
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth

START, END, TAG, SCORE = range(4)
"""columns of a prediction: a row of it is one word"""
SHOWN = 8
"""maximum number of label names in an error message"""
Words = Sequence[tuple[int, int]]
"""character range of each word"""


def objects(rows: Sequence[NDArray[Any]]) -> NDArray[np.object_]:
    """[n] an array whose entries are arrays, one per row: rows have different numbers of words."""
    found = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        found[i] = row
    return found


class Tags(Kind):
    """A target is an array of tag numbers, one per word. A prediction is an array [words, 4]: character range of the
    word, its tag number and the probability of this tag. The tags of words that the model did not see are outside."""

    name = "tags"
    has_one_class = True
    labels_words = True
    default_loss = "cross-entropy"
    default_metrics = ("entity-f1", "entity-precision", "entity-recall", "token-accuracy")
    metrics: ClassVar[Mapping[str, Form]] = {
        "entity-f1": entities.of_words(entities.counted_spans, entities.f1),
        "entity-precision": entities.of_words(entities.counted_spans, entities.precision),
        "entity-recall": entities.of_words(entities.counted_spans, entities.recall),
        "token-accuracy": entities.of_words(entities.counted_words, entities.recall),
    }
    target_type = np.int64
    hub_task = "token-classification"
    auto_class = "AutoModelForTokenClassification"
    activation = "softmax"
    why_no_suspects = "the features of an audit are of whole texts, not of words"
    defaults: ClassVar[Mapping[str, Any]] = {"pooling": "words"}

    # the recipe

    def check_declared(self, names: Sequence[Any] | None, bounds: tuple[float, float] | None, *, scaled: bool) -> None:
        if bounds is not None or not scaled:
            raise ValueError("`range` and `scale` are for a regression, but the task has tags")
        if names is not None and len({str(name) for name in names}) < max(2, len(names)):
            raise ValueError("`labels` must have at least two tags, all different")

    def check_words(
        self,
        reading: str,
        *,
        keeps_words: bool,
        masks: bool,
        long_texts: str,
        words: str | None,  # noqa: ARG002
        subwords: str | None,  # noqa: ARG002
    ) -> None:
        if reading != "single":
            raise ValueError(f"`reading` is {reading!r}, but tags are for the words of one text; leave it out")
        if not keeps_words:
            raise ValueError(
                '`pooling` makes one vector of a text, but tags need one for each word; leave it out or say "words"'
            )
        if long_texts != "truncate":
            raise ValueError(
                f'`long_texts` is "{long_texts}", but the words of tags are those of one sequence from the beginning; '
                'expected "truncate"'
            )
        if masks:
            raise ValueError(
                "`data.mask` changes the characters that the spans of tags point to; mask the files beforehand"
            )

    def word_split(self, chosen: WordSplit | None) -> WordSplit | None:
        return chosen or "punctuation"

    # labels

    def find_labels(
        self,
        column: Seen,
        names: Sequence[Any] | None,
        bounds: tuple[float, float] | None,  # noqa: ARG002
        *,
        scaled: bool,  # noqa: ARG002
    ) -> Labels:
        found = [str(name) for name in names] if names is not None else column.names(self)
        tags = [OUTSIDE, *(name for name in found if name != OUTSIDE)]
        if len(tags) < 2:
            raise UserError(f"{column.where} has no tag but {OUTSIDE!r}; expected lists of tags, or lists of spans")
        return Labels(self, names=tuple(tags))

    def fits(self, labels: Labels) -> bool:
        names = labels.names
        return len(names) > 1 and len(set(names)) == len(names) and names[0] == OUTSIDE

    def expected(self, labels: Labels) -> str:
        shown = ", ".join(labels.names[:SHOWN]) + (", ..." if len(labels.names) > SHOWN else "")
        return f"one of {shown} for each word"

    def counted(self, labels: Labels) -> str:
        return f"{len(labels.names)} tags"

    def parts(self, cell: str) -> list[str]:
        """Return the tags in a cell. A span of characters needs both tags of BIO."""
        try:
            entries = _entries(cell)
        except ValueError:
            return []
        if _has_ranges(entries):
            types = dict.fromkeys(str(entry["label"]) for entry in entries)
            return [OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI")]
        return list(dict.fromkeys(entries))

    def mapped(self, cell: str, names: Mapping[str, str]) -> str:
        """Rename tags, or the types in tags such as B-city."""
        if not names:
            return cell
        try:
            entries = _entries(cell)
        except ValueError:
            return cell
        if _has_ranges(entries):
            return json.dumps([entry | {"label": names.get(str(entry["label"]), entry["label"])} for entry in entries])
        return json.dumps([_renamed(tag, names) for tag in entries])

    # targets

    def target(self, cell: str, labels: Labels) -> list[float] | None:
        """Return the tag numbers of a list of tags; spans of characters need `word_target`."""
        try:
            entries = _entries(cell)
        except ValueError:
            return None
        if _has_ranges(entries) or any(tag not in labels.names for tag in entries):
            return None
        return [labels.names.index(tag) for tag in entries]

    def word_target(self, cell: str, words: Words, labels: Labels) -> NDArray[np.int64]:
        """Return the tag number of each word. Raise ValueError if the cell does not fit the text or the labels."""
        if not cell.strip():
            raise ValueError("has no tags")
        entries = _entries(cell)
        is_tags = bool(entries) and not _has_ranges(entries)  # an empty list has no spans
        tags = entries if is_tags else bio_tags(words, [_range(entry) for entry in entries])
        if len(tags) != len(words):
            raise ValueError(f"has {len(tags)} tags for {len(words)} words")
        number = {name: i for i, name in enumerate(labels.names)}
        unknown = next((tag for tag in tags if tag not in number), None)
        if unknown is not None:
            raise ValueError(f"has the tag {unknown!r}, expected {self.expected(labels)}")
        return np.array([number[tag] for tag in tags], dtype=np.int64)

    def blank(self, labels: Labels) -> list[float]:  # noqa: ARG002
        return []

    def flat(self, targets: Targets) -> Targets:
        return np.concatenate([np.empty(0, np.int64), *targets])

    def distribution(self, labels: Labels, targets: Targets) -> str:
        words = sum(map(len, targets))
        spans = sum(len(spans_of(row, labels.names)) for row in targets)
        types = len(scheme_of(labels.names).found)
        return f"{words:,} words, {spans:,} spans of {types} types"

    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        return Classification().divergence(one, two)

    # predictions

    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> Targets:  # noqa: ARG002
        """[n] arrays of tag numbers"""
        return cast(Targets, objects([np.asarray(row)[:, TAG].astype(np.int64) for row in predictions]))

    def majority(self, truth: Truth) -> Predictions:
        """Predict the most frequent tag for every word."""
        commonest = np.bincount(self.flat(truth.targets).astype(np.int64), minlength=truth.classes).argmax()
        rows = [np.tile([0.0, 0.0, float(commonest), 1.0], (len(row), 1)) for row in truth.targets]
        return cast(Predictions, objects(rows))

    def constant_answer(self, labels: Labels, chosen: Targets, targets: Targets) -> str | None:
        found, true = (np.unique(self.flat(rows)) for rows in (chosen, targets))
        return labels.names[int(found[0])] if len(found) == 1 and len(true) > 1 else None

    def answer(self, labels: Labels, value: Any) -> Answer:
        """The label is the list of spans. Scores are means over words."""
        words = np.asarray(value, dtype=np.float64).reshape(-1, 4)
        spans = [
            {
                "start": int(words[span.start, START]),
                "end": int(words[span.end - 1, END]),
                "label": span.type,
                "score": float(words[span.start : span.end, SCORE].mean()),
            }
            for span in spans_of(words[:, TAG].astype(np.int64), labels.names)
        ]
        return spans, float(words[:, SCORE].mean()) if len(words) else 1.0, None

    def no_answer(self) -> Answer:
        return None, math.nan, None

    def answer_columns(self, labels: Labels) -> list[tuple[str, pa.DataType]]:  # noqa: ARG002
        span = pa.struct([("start", pa.int64()), ("end", pa.int64()), ("label", pa.string()), ("score", pa.float64())])
        return [("label", pa.list_(span)), ("score", pa.float64())]

    def outcome(self, label: Any) -> Any:
        """The types of the spans: swapped words have other lengths, which moves the spans after them."""
        return [span["label"] for span in label]

    def moves(self, labels: Labels, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Absolute difference of the mean probability of the predicted tags."""
        return np.asarray(np.abs(before - after))

    # audits of data

    def groups(self, labels: Labels, targets: Targets) -> NDArray[np.int64]:  # noqa: ARG002
        return np.unique([row.tobytes() for row in targets], return_inverse=True)[1].reshape(-1)

    def differ(self, labels: Labels, one: Targets, two: Targets) -> NDArray[np.bool_]:  # noqa: ARG002
        return np.array([not np.array_equal(*rows) for rows in zip(one, two, strict=True)], dtype=np.bool_)

    # predictions/TASK.parquet

    @property
    def cell_type(self) -> pa.DataType:
        return pa.list_(pa.string())

    def cells(self, values: Targets, names: Sequence[str]) -> list[list[str]]:
        return [[names[int(number)] for number in row] for row in values]

    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> Targets:
        number = {name: i for i, name in enumerate(names)}
        return cast(Targets, objects([np.array([number[tag] for tag in row], dtype=np.int64) for row in cells]))

    def saved_columns(self, labels: Labels, predictions: Predictions) -> dict[str, tuple[pa.DataType, Any]]:  # noqa: ARG002
        whole, real = pa.list_(pa.int32()), pa.list_(pa.float64())
        return {
            "starts": (whole, [row[:, START].astype(np.int32) for row in predictions]),
            "ends": (whole, [row[:, END].astype(np.int32) for row in predictions]),
            "scores": (real, [row[:, SCORE] for row in predictions]),
        }

    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:
        tags = self.read_cells(columns["prediction"].to_pylist(), names)
        parts = [columns[name].to_pylist() for name in ("starts", "ends")]
        rows = zip(*parts, tags, columns["scores"].to_pylist(), strict=True)
        return cast(Predictions, objects([np.array(row, dtype=np.float64).T.reshape(-1, 4) for row in rows]))

    def shown(self, names: Sequence[str], answer: Any) -> str:
        """The tags of all words outside are left out."""
        spans = spans_of(answer, tuple(names))
        return ", ".join(f"{span.type} ({span.start + 1}-{span.end})" for span in spans) or "no spans"

    # export

    def reading_code(self, labels: Labels) -> list[str]:  # noqa: ARG002
        return [
            "for row in logits.softmax(dim=2):",
            "    print([(model.config.id2label[int(token.argmax())], float(token.max())) for token in row])",
        ]

    def describe_logits(self, labels: Labels) -> str:
        names = ", ".join(f"`{label}`" for label in labels.names)
        return (
            f"`logits` has a row for every token. Its softmax is the probability of each tag: {names}. "
            "Read the first token of each word."
        )


def _entries(cell: str) -> list[Any]:
    """Parse a cell: a list of tags, or a list of spans with start, end and label. Raise ValueError if it is neither."""
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list):
        if all(isinstance(entry, str) for entry in found):
            return found
        if all(isinstance(entry, dict) and {"start", "end", "label"} <= entry.keys() for entry in found):
            return found
    raise ValueError(
        f'has {cell[:80]!r}, expected a list of tags such as ["O", "B-city"], or a list of spans such as '
        '[{"start": 5, "end": 10, "label": "city"}]'
    )


def _has_ranges(entries: list[Any]) -> bool:
    return bool(entries) and isinstance(entries[0], dict)


def _range(entry: dict[str, Any]) -> tuple[int, int, str]:
    start, end, label = entry["start"], entry["end"], entry["label"]
    if not (type(start) is int and type(end) is int and 0 <= start < end and isinstance(label, str) and label):
        raise ValueError(f"has the span {entry}, expected whole numbers start < end and a label")
    return start, end, label


def _renamed(tag: str, names: Mapping[str, str]) -> str:
    match = PREFIXED.fullmatch(tag)
    if tag in names or match is None or match[2] is None:
        return names.get(tag, tag)
    return f"{match[1]}-{names.get(match[2], match[2])}"
