"""Matches: pairs of texts that belong together, without labels."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from weft.kinds.base import Answer, Kind, Seen, Vectors
from weft.kinds.forms import Form
from weft.kinds.labels import Labels
from weft.kinds.ranking import RANK, SIMILARITY, mrr, ndcg_at, rank_candidates, recall_at
from weft.kinds.truth import Predictions, Targets, Thresholds, Truth


class Matches(Kind):
    """A target has the numbers of the row's texts, equal for equal texts: first text, second text, hard negatives.

    The answer for a pair is the cosine similarity of its vectors. Metrics rank the second texts of a split.
    """

    name = "matches"
    default_loss = "in-batch-negatives"
    default_metrics = ("recall-at-10", "recall-at-1", "mrr", "ndcg-at-10")
    metrics: ClassVar[Mapping[str, Form]] = {
        "recall-at-1": recall_at(1),
        "recall-at-10": recall_at(10),
        "mrr": mrr(),
        "ndcg-at-10": ndcg_at(10),
    }
    target_type = np.int64
    hub_task = "sentence-similarity"
    activation = "identity"
    defaults: ClassVar[Mapping[str, Any]] = {"reading": "bi", "head": "vectors", "data": {"label": ()}}
    ranks = True
    why_no_suspects = "pairs that match have no labels that could be wrong"

    def check_declared(
        self,
        names: Sequence[Any] | None,
        bounds: tuple[float, float] | None,
        *,
        scaled: bool,  # noqa: ARG002
    ) -> None:
        for key, value in (("labels", names), ("range", bounds)):
            if value is not None:
                raise ValueError(f"`{key}` describes labels, but matches have none; leave it out")

    def check_columns(self, columns: int) -> None:
        if columns:
            raise ValueError(
                "`data.label` names a column, but matches have no labels; leave it out. Pairs with a score are a "
                'regression with loss = "cosent" or "angle"; pairs with a yes or no are a classification'
            )

    def check_texts(self, reading: str, negatives: int) -> None:  # noqa: ARG002
        if reading != "bi":
            raise ValueError(f'`reading` is "{reading}", but matches compare the vectors of two texts; expected "bi"')

    def find_labels(
        self,
        column: Seen,  # noqa: ARG002
        names: Sequence[Any] | None,  # noqa: ARG002
        bounds: tuple[float, float] | None,  # noqa: ARG002
        *,
        scaled: bool,  # noqa: ARG002
    ) -> Labels:
        return Labels(self)

    def fits(self, labels: Labels) -> bool:
        return not labels.names

    def expected(self, labels: Labels) -> str:  # noqa: ARG002
        return "two texts that match"

    def parts(self, cell: str) -> list[str]:
        return cell.split()

    def mapped(self, cell: str, names: Mapping[str, str]) -> str:  # noqa: ARG002
        return cell

    def target(self, cell: str, labels: Labels) -> list[float]:  # noqa: ARG002
        return [int(number) for number in cell.split()]

    def blank(self, labels: Labels) -> list[float]:  # noqa: ARG002
        return []

    def distribution(self, labels: Labels, targets: Targets) -> str:  # noqa: ARG002
        anchors, candidates = (len(np.unique(targets[:, side])) for side in (0, 1))
        return f"{anchors:,} distinct first texts, {candidates:,} distinct second texts"

    def divergence(self, one: Tensor, two: Tensor) -> Tensor:
        return (one - two).square()

    def decide(self, predictions: Predictions, thresholds: Thresholds | None = None) -> Predictions:  # noqa: ARG002
        return predictions

    def ranked(self, first: Vectors, second: Vectors, targets: Targets) -> Predictions:
        return rank_candidates(first, second, targets)

    def majority(self, truth: Truth) -> Predictions:
        """Give all candidates the same similarity: each has the mean rank."""
        middle = (len(np.unique(truth.targets[:, 1])) + 1) / 2
        return np.tile([0.0, middle, 0.0], (len(truth), 1))

    def answer(self, labels: Labels, value: Any) -> Answer:  # noqa: ARG002
        return None, float(value), None

    def no_answer(self) -> Answer:
        return None, math.nan, None

    def relevance(self, labels: Labels, answer: Answer) -> float:  # noqa: ARG002
        return answer[1]

    def answer_columns(self, labels: Labels) -> list[tuple[str, pa.DataType]]:  # noqa: ARG002
        return [("score", pa.float64())]

    def moves(self, labels: Labels, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Half of the absolute difference of the cosine similarities."""
        return np.asarray(np.abs(before - after) / 2)

    def groups(self, labels: Labels, targets: Targets) -> NDArray[np.int64]:  # noqa: ARG002
        """Put all rows into one group: there are no labels that could differ."""
        return np.zeros(len(targets), dtype=np.int64)

    def differ(self, labels: Labels, one: Targets, two: Targets) -> NDArray[np.bool_]:  # noqa: ARG002
        """Nothing contradicts: a text may have any number of matches."""
        return np.zeros(len(one), dtype=np.bool_)

    @property
    def cell_type(self) -> pa.DataType:
        return pa.list_(pa.float64())

    def cells(self, values: Targets, names: Sequence[str]) -> list[list[float]]:  # noqa: ARG002
        found: list[list[float]] = np.asarray(values, dtype=np.float64).tolist()
        return found

    def read_cells(self, cells: Sequence[Any], names: Sequence[str]) -> NDArray[np.int64]:  # noqa: ARG002
        return np.array(cells, dtype=np.int64)

    def read_predictions(self, columns: Mapping[str, pa.ChunkedArray], names: Sequence[str]) -> Predictions:  # noqa: ARG002
        return np.array(columns["prediction"].to_pylist(), dtype=np.float64)

    def shown(self, names: Sequence[str], answer: Any) -> str:  # noqa: ARG002
        """Format the rank of the second text; a target, which has no rank, is a match."""
        values = np.asarray(answer)
        if values.dtype.kind == "i":
            return "match"
        return f"rank {values[RANK]:,.0f}, similarity {values[SIMILARITY]:.2f}"

    def reading_code(self, labels: Labels) -> list[str]:  # noqa: ARG002
        return ["print(logits[:, 0].tolist())"]

    def describe_logits(self, labels: Labels) -> str:  # noqa: ARG002
        return "`logits` has one number for each row: the cosine similarity of the two texts."
