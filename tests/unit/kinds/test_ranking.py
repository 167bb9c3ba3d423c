"""Retrieval metrics, against sentence-transformers and against all permutations."""

from itertools import permutations

import numpy as np
import pytest

from weft.evaluation.bootstrap import resampled
from weft.evaluation.together import resampled_together
from weft.kinds import KINDS, ranking
from weft.kinds.metrics import METRICS
from weft.kinds.ranking import NEAREST, RANK, SIMILARITY, rank_candidates
from weft.kinds.truth import Truth

MATCHES = KINDS["matches"]
# anchors 0, 1, 2, 3; anchor 0 has three correct candidates, one of them in two rows; candidate 1 is an anchor too
TARGETS = np.array([[0, 10], [0, 11], [0, 12], [0, 10], [1, 13], [2, 1], [3, 11], [1, 14]])


def sides(seed: int = 1, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the texts of `TARGETS`; equal texts have equal vectors."""
    texts = np.random.default_rng(seed).normal(size=(20, width)).astype(np.float32)
    return texts[TARGETS[:, 0]], texts[TARGETS[:, 1]]


def test_recall_and_ndcg_equal_the_library() -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from torch import nn

    first, second = sides()
    rows = TARGETS[:, 1] != 1  # without the candidate that is an anchor, which the library cannot leave out
    queries = {str(a): str(a) for a in TARGETS[rows, 0]}
    corpus = {str(c): str(c) for c in TARGETS[rows, 1]}
    relevant = {a: {str(c) for b, c in TARGETS if str(b) == a} for a in queries}
    known = dict(zip(map(str, TARGETS[:, 0]), first, strict=True)) | dict(
        zip(map(str, TARGETS[:, 1]), second, strict=True)
    )

    class Given(SentenceTransformer):
        def __init__(self) -> None:
            super().__init__(modules=[nn.Identity()])

        def encode(self, inputs: list[str], **_: object) -> np.ndarray:  # type: ignore[override]
            return np.stack([known[text] for text in inputs])

    evaluator = InformationRetrievalEvaluator(
        queries,
        corpus,
        relevant,
        precision_recall_at_k=[1, 3],
        ndcg_at_k=[3],
        mrr_at_k=[100],
        accuracy_at_k=[1],
        map_at_k=[1],
        score_functions={"cos": lambda a, b: _unit(a) @ _unit(b).T},
        write_csv=False,
    )
    theirs = evaluator(Given())
    truth = Truth(MATCHES, TARGETS[rows])
    predictions = rank_candidates(first[rows], second[rows], TARGETS[rows])
    ours = {
        "cos_recall@1": ranking.recall_at(1),
        "cos_recall@3": ranking.recall_at(3),
        "cos_ndcg@3": ranking.ndcg_at(3),
        "cos_mrr@100": ranking.mrr(),
    }
    for name, form in ours.items():
        assert form.compute(truth, predictions) == pytest.approx(theirs[name]), name
    assert 0 < theirs["cos_recall@1"] < 1


def _unit(given: object) -> object:
    import torch

    return torch.nn.functional.normalize(torch.as_tensor(np.asarray(given)), dim=1)


@pytest.mark.parametrize("cells", [1, 13, 10**6])
def test_ranks_equal_brute_force_in_blocks_of_any_size(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "CELLS", cells)
    first, second = sides()
    found = rank_candidates(first, second, TARGETS)
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second)]
    for row, (anchor, own) in enumerate(TARGETS):
        scores = {c: float(unit[0][row] @ unit[1][i]) for i, c in enumerate(TARGETS[:, 1]) if c not in (anchor,)}
        assert found[row, SIMILARITY] == pytest.approx(scores[own], abs=1e-6)
        assert found[row, RANK] == 1 + sum(score > scores[own] + 1e-6 for score in scores.values())
        assert TARGETS[int(found[row, NEAREST]), 1] == max(scores, key=lambda c: scores[c])


def test_ties_share_their_mean_rank() -> None:
    one = np.ones((5, 3), dtype=np.float32)
    targets = np.array([[i, 10 + i] for i in range(5)])
    found = rank_candidates(one, one, targets)
    assert found[:, RANK].tolist() == [3.0] * 5
    truth = Truth(MATCHES, targets)
    for name in MATCHES.metrics:
        assert METRICS[name].majority(truth) == METRICS[name].compute(truth, found)


@pytest.mark.parametrize("name", MATCHES.metrics)
def test_the_random_baseline_is_the_mean_over_all_orders(name: str) -> None:
    truth = Truth(MATCHES, TARGETS)
    values = []
    for order in permutations(range(1, 7)):  # ranks of 10, 11, 12, 13, 14 and 1
        rank = dict(zip((10, 11, 12, 13, 14, 1), order, strict=True))
        # anchor 1 is itself a candidate, which does not count for it
        own = [[0.0, rank[c] - (a == 1 and rank[1] < rank[c]), 0.0] for a, c in TARGETS.tolist()]
        values.append(METRICS[name].compute(truth, np.array(own, dtype=np.float64)))
    assert METRICS[name].random(truth) == pytest.approx(np.mean(values))


@pytest.mark.parametrize("name", MATCHES.metrics)
def test_resamples_draw_anchors(name: str) -> None:
    truth, predictions = Truth(MATCHES, TARGETS), rank_candidates(*sides(), TARGETS)
    form = METRICS[name].weighted(truth, predictions)
    assert form(np.ones(len(TARGETS))) == pytest.approx(METRICS[name].compute(truth, predictions))
    twice = np.array([2.0, 0, 0, 0, 0, 0, 1, 0])  # anchor 0 twice, by its first row, and anchor 3
    alone = [METRICS[name].compute(truth.rows(np.array(rows)), predictions[rows]) for rows in ([0, 1, 2, 3], [6])]
    assert form(twice) == pytest.approx((2 * alone[0] + alone[1]) / 3)
    assert np.isnan(form(np.array([0.0, 1, 0, 0, 0, 0, 0, 0])))
    one = resampled([name], truth, predictions, "x", 40)[name]
    many = resampled_together(name, [(truth, predictions)], "x")[:40, 0]
    np.testing.assert_allclose(one, many)
