"""Nearest pairs, neighbours and hard negatives, against brute force."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import weft
from tests.tiny import ANIMALS, matches_task, recipe_content, write_rows
from weft import UserError
from weft.api import mine_file
from weft.inference import mining, nearest
from weft.inference.bulk.parts import parts_folder


@pytest.fixture(scope="module")
def run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mine") / "run"
    weft.train(recipe_content(tiny, epochs=1, tasks={"pairs": matches_task(tiny)}), out, device="cpu", steps=1)
    return out


@pytest.fixture(params=[(3, 4), (50, 7), (4096, 4096)])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, candidates = request.param
    monkeypatch.setattr(mining, "QUERIES", queries)
    monkeypatch.setattr(nearest, "CANDIDATES", candidates)


def cosines(vectors: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    sides = [np.asarray(v, np.float64) for v in (vectors, vectors if others is None else others)]
    one, two = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in sides)
    found: np.ndarray = one @ two.T
    return found


def neighbours(similar: np.ndarray, k: int) -> set[tuple[int, int]]:
    similar = similar.copy()
    np.fill_diagonal(similar, -np.inf)
    return {(row, int(j)) for row, own in enumerate(similar) for j in np.argsort(-own)[:k]}


def write_vectors(path: Path, rows: int = 60, seed: int = 1) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, 8)).astype(np.float32)
    np.save(path, vectors)
    return vectors


@pytest.mark.usefixtures("blocks")
def test_neighbours_of_vectors_equal_brute_force(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "v.npy")
    out = tmp_path / "out.parquet"
    assert mine_file(None, tmp_path / "v.npy", out, mode="neighbours", top_k=5) == 60
    table = pq.read_table(out).to_pydict()
    assert set(zip(table["row"], table["row2"], strict=True)) == neighbours(cosines(vectors), 5)
    expected = cosines(vectors)[table["row"], table["row2"]]
    np.testing.assert_allclose(table["score"], expected, atol=1e-6)
    for row in range(60):
        own = [score for r, score in zip(table["row"], table["score"], strict=True) if r == row]
        assert own == sorted(own, reverse=True)
    assert not parts_folder(out).exists()


@pytest.mark.usefixtures("blocks")
def test_every_pair_is_written_once(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "v.npy")
    mine_file(None, tmp_path / "v.npy", tmp_path / "out.jsonl", top_k=4, min_score=0.3)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    similar = cosines(vectors)
    expected = {(min(p), max(p)) for p in neighbours(similar, 4) if similar[p] >= 0.3}
    pairs = [(row["row"], row["row2"]) for row in rows]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


def test_a_vector_without_direction_is_no_neighbour(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "v.npy")
    vectors[3], vectors[5] = 0.0, np.nan
    np.save(tmp_path / "v.npy", vectors)
    mine_file(None, tmp_path / "v.npy", tmp_path / "out.parquet", top_k=50, mode="neighbours")
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert not {3, 5} & {*table["row"], *table["row2"]}
    assert set(table["row"]) == set(range(60)) - {3, 5}


@pytest.mark.usefixtures("blocks")
def test_texts_are_embedded_and_written(run: Path, tmp_path: Path) -> None:
    texts = [f"a {one} {two}" for one in ANIMALS for two in ("film", "dull", "warm")]
    write_rows(tmp_path / "texts.tsv", [{"text": text} for text in texts])
    mine_file(run, tmp_path / "texts.tsv", tmp_path / "out.csv", top_k=2)
    with (tmp_path / "out.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    similar = cosines(weft.load(run).embed(texts))
    for row in rows:
        one, two = int(row["row"]), int(row["row2"])
        assert (row["text"], row["text2"]) == (texts[one], texts[two])
        assert float(row["score"]) == pytest.approx(similar[one, two], abs=1e-5)
    assert {(int(r["row"]), int(r["row2"])) for r in rows} == {(min(p), max(p)) for p in neighbours(similar, 2)}


# "a cat" has two matches, one of them in two rows; "the dog" is a first and a second text
PAIRS = [
    ("a cat", "the cat"),
    ("a cat", "the horse"),
    ("A  cat", "the cat"),
    ("the dog", "a dog film"),
    ("a heron", "the dog"),
    ("a trout", "a beetle"),
    ("a warm film", "the horse"),
]


def candidates_of(first: str, second: str) -> set[str]:
    """What may be a negative, by the definition."""
    own = {two for one, two in PAIRS if " ".join(one.lower().split()) == " ".join(first.lower().split())}
    return {two for _, two in PAIRS} - own - {first, second}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("options", [{}, {"skip": 1}, {"margin": 0.02}, {"min_score": 0.5}])
def test_negatives_are_the_nearest_texts_that_are_no_matches(
    run: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    write_rows(tmp_path / "pairs.tsv", [{"text": one, "text2": two} for one, two in PAIRS])
    out = tmp_path / "out.parquet"
    assert mine_file(run, tmp_path / "pairs.tsv", out, mode="negatives", top_k=2, **options) == len(PAIRS)
    found = pq.read_table(out).to_pylist()
    model = weft.load(run)
    at = 0
    for first, second in PAIRS:
        possible = sorted(candidates_of(first, second))
        own = float(cosines(model.embed([first]), model.embed([second]))[0, 0])
        scores = dict(zip(possible, cosines(model.embed([first]), model.embed(possible))[0].tolist(), strict=True))
        kept = [t for t in sorted(possible, key=lambda t: -scores[t]) if scores[t] <= own - options.get("margin", -9)]
        kept = [t for t in kept[options.get("skip", 0) :][:2] if scores[t] >= options.get("min_score", -1)]
        rows = found[at : at + len(kept)]
        assert [(r["text"], r["text2"], r["negative"]) for r in rows] == [(first, second, t) for t in kept]
        assert [r["negative_score"] for r in rows] == pytest.approx([scores[t] for t in kept], abs=1e-5)
        assert all(r["score"] == pytest.approx(own, abs=1e-5) for r in rows)
        at += len(kept)
    assert at == len(found)


def test_an_interrupted_search_continues(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "QUERIES", 4)
    texts = [{"text": f"a {one} {two}"} for one in ANIMALS for two in ("film", "dull", "warm")]
    write_rows(tmp_path / "texts.tsv", texts)
    mine_file(run, tmp_path / "texts.tsv", tmp_path / "whole.jsonl", top_k=3)
    real, asked = mining.nearest, []

    def fails(queries: Any, rows: range, *rest: Any) -> Any:
        asked.append(rows.start)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(queries, rows, *rest)

    monkeypatch.setattr(mining, "nearest", fails)
    out = tmp_path / "out.jsonl"
    with pytest.raises(weft.Interrupted, match="run the same command to continue"):
        mine_file(run, tmp_path / "texts.tsv", out, top_k=3)
    assert not out.exists()
    assert parts_folder(out).exists()
    embedded = mining.BulkJob.run
    monkeypatch.setattr(mining.BulkJob, "run", lambda *_: pytest.fail("the vectors were computed already"))
    mine_file(run, tmp_path / "texts.tsv", out, top_k=3)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert asked == [0, 4, 8, 8, 12, 16]
    monkeypatch.setattr(mining.BulkJob, "run", embedded)
    assert not parts_folder(out).exists()


def test_what_is_rejected(run: Path, tmp_path: Path) -> None:
    write_vectors(tmp_path / "v.npy")
    write_rows(tmp_path / "texts.tsv", [{"text": "a cat"}])
    (tmp_path / "empty.csv").write_text("text\n")
    np.save(tmp_path / "flat.npy", np.ones(4, dtype=np.float32))
    vectors, texts, out = tmp_path / "v.npy", tmp_path / "texts.tsv", tmp_path / "out.csv"
    cases: list[tuple[Any, Path, dict[str, Any], str]] = [
        (None, texts, {}, "texts need a model"),
        (run, vectors, {}, "holds vectors, which need no model"),
        (None, vectors, {"mode": "negatives"}, "reads texts and their matches"),
        (None, vectors, {"mode": "near"}, "--mode near: expected pairs, neighbours, negatives"),
        (None, vectors, {"top_k": 0}, "--top-k 0: expected at least 1"),
        (None, vectors, {"min_score": 3}, "--min-score 3: expected a cosine"),
        (None, vectors, {"margin": 0.1}, "--skip and --margin go with --mode negatives"),
        (None, tmp_path / "flat.npy", {}, r"has float32 of shape \[4\], expected vectors"),
        (None, tmp_path / "none.npy", {}, "there is no such file"),
        (run, texts, {"mode": "negatives"}, "there is no column 'a'"),
        (run, tmp_path / "empty.csv", {}, "has no rows"),
    ]
    for model, source, options, message in cases:
        with pytest.raises(UserError, match=message):
            mine_file(model, source, out, **options)
    assert not out.exists()
    assert not parts_folder(out).exists()
