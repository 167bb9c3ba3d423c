"""The exact search, against a full matrix of 64-bit floats."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.inference import nearest as module
from weft.inference.mining import itself
from weft.inference.nearest import Limits, VectorFile, nearest


def saved(folder: Path, vectors: np.ndarray) -> VectorFile:
    np.save(folder / "v.npy", vectors.astype(np.float32))
    return VectorFile(folder / "v.npy")


def brute_force(vectors: np.ndarray, k: int, limits: Limits) -> list[list[tuple[int, float]]]:
    """The definition: cosines in 64 bits, rounded to 2^-24, best first, the earlier candidate first among equals."""
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = np.asarray(vectors, np.float64) / np.linalg.norm(np.asarray(vectors, np.float64), axis=1, keepdims=True)
    scores = (np.round(unit @ unit.T * 2**24) / 2**24).astype(np.float32)
    counts = np.isfinite(scores) & (scores >= limits.at_least)
    np.fill_diagonal(counts, val=False)
    if limits.at_most is not None:
        counts &= scores <= limits.at_most[:, None]
    if limits.usable is not None:
        counts &= limits.usable[None]
    found = []
    for own, possible in zip(scores, counts, strict=True):
        order = sorted(np.flatnonzero(possible).tolist(), key=lambda j: (-own[j], j))
        found.append([(j, float(own[j])) for j in order[:k]])
    return found


def search(file: VectorFile, k: int, limits: Limits, queries: int) -> list[list[tuple[int, float]]]:
    rows = []
    for start in range(0, len(file), queries):
        found = nearest(file, range(start, min(start + queries, len(file))), file, k, limits)
        for numbers, scores in zip(found.rows.tolist(), found.scores.tolist(), strict=True):
            rows.append([pair for pair in zip(numbers, scores, strict=True) if np.isfinite(pair[1])])
    return rows


@st.composite
def crowded_vectors(draw: st.DrawFn) -> np.ndarray:
    """Few directions, each with exact and near copies, and vectors without a direction."""
    seed = draw(st.integers(0, 2**32 - 1))
    rows, directions = draw(st.integers(1, 70)), draw(st.integers(1, 6))
    noise = draw(st.sampled_from([0.0, 1e-8, 1e-7, 1e-6, 1e-3]))
    random = np.random.default_rng(seed)
    base = random.integers(-2, 3, size=(directions, draw(st.integers(2, 9)))).astype(np.float64)
    vectors = base[random.integers(0, directions, rows)] * random.choice([0.5, 1.0, 3.0], size=(rows, 1))
    moved = random.random(rows) < 0.5
    vectors[moved] *= 1 + noise * random.standard_normal((moved.sum(), base.shape[1]))
    vectors[random.random(rows) < 0.05] = 0.0
    vectors[random.random(rows) < 0.05, 0] = np.nan
    return vectors.astype(np.float32)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    vectors=crowded_vectors(),
    k=st.integers(1, 12),
    spare=st.sampled_from([0, 1, 16]),
    blocks=st.tuples(st.sampled_from([3, 50]), st.sampled_from([4, 7, 4096])),
    least=st.sampled_from([-np.inf, 0.0, 0.9999]),
    most=st.sampled_from([None, 0.5, 1.0]),
    some=st.booleans(),
)
def test_ties_and_near_duplicates_equal_brute_force(
    tmp_path: Path,
    vectors: np.ndarray,
    k: int,
    spare: int,
    blocks: tuple[int, int],
    least: float,
    most: float | None,
    some: bool,
) -> None:
    limits = Limits(
        least,
        at_most=None if most is None else np.full(len(vectors), most, dtype=np.float32),
        usable=np.arange(len(vectors)) % 3 > 0 if some else None,
        hidden=itself,
    )
    queries, candidates = blocks
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SPARE": spare, "CANDIDATES": candidates, "AGAIN": 5, "PAIRS": 11}.items():
            patch.setattr(module, name, value)
        found = search(saved(tmp_path, vectors), k, limits, queries)
    assert found == brute_force(vectors, k, limits)


def test_only_unsure_queries_are_searched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    vectors = random.standard_normal((300, 16))
    vectors[40:80] = vectors[40]  # more copies than a pool holds
    asked: list[int] = []
    real = module._Search.again
    monkeypatch.setattr(
        module._Search, "again", lambda self, places, k: (asked.extend(places.tolist()), real(self, places, k))[1]
    )
    limits = Limits(hidden=itself)
    assert search(saved(tmp_path, vectors), 5, limits, 4096) == brute_force(vectors.astype(np.float32), 5, limits)
    assert set(range(40, 80)) <= set(asked)
    assert len(asked) < 100


def test_rounding_of_32_bits_does_not_decide(tmp_path: Path) -> None:
    """Candidates whose order 32-bit products get wrong: near copies of one vector of 384 numbers."""
    random = np.random.default_rng(2)
    base = random.standard_normal(384)
    vectors = (base + 3e-3 * random.standard_normal((200, 384))).astype(np.float32)
    limits = Limits(hidden=itself)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rough = unit @ unit.T
    np.fill_diagonal(rough, -1)
    expected = brute_force(vectors, 10, limits)
    by_rough = [set(np.argsort(-own, kind="stable")[:10].tolist()) for own in rough]
    assert [{j for j, _ in own} for own in expected] != by_rough, "the test needs candidates that are close"
    assert search(saved(tmp_path, vectors), 10, limits, 64) == expected
