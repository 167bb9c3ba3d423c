"""Long texts of a loaded model: predictions, embeddings and evaluation read the same windows."""

from pathlib import Path

import numpy as np
import pytest

from tests.exported import SECONDS, TEXTS, write_model
from weft.inference.model import Model, load
from weft.tasks.building import build_reader

WINDOWS = {"name": "windows", "pool": "attention"}
TASKS = {
    "mood": {"like": "sentiment", "pooling": "mean", "long_texts": WINDOWS},
    "plain": {"like": "sentiment", "pooling": "mean"},
    "near": {"like": "similarity", "long_texts": WINDOWS},
}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    out = tmp_path_factory.mktemp("model")
    return load(write_model(tiny, out, TASKS, body=str(tiny / "body"), max_length=16), "cpu")


def test_all_tasks_at_once_equal_each_alone(model: Model) -> None:
    both = model.predict_all(TEXTS, SECONDS)
    for task, own in both.items():
        alone = model.predict(task, TEXTS, SECONDS if task == "near" else None)
        np.testing.assert_allclose([a.score for a in own], [a.score for a in alone], atol=1e-6)
    assert max(row[0].windows for row in model.rows("mood", TEXTS)) == 8
    assert max(row[0].windows for row in model.rows("plain", TEXTS)) == 1


def test_a_long_text_is_embedded_by_its_windows(model: Model) -> None:
    """The windows' own vectors, each embedded as a text of its own, weighted by the learned query."""
    reader = build_reader(model.config, "mood", model.tokenizer)
    (ids,) = (np.array(i, dtype=np.int32) for i in model.tokenizer.encode([TEXTS[5]]))
    pieces = reader.long_texts.pieces(ids, reader.room)
    assert len(pieces) > 1
    alone = model.engine.vectors("mood", [reader.sequences(piece, None)[0] for piece in pieces])
    (query,) = (p.detach().numpy() for p in model.network.task("mood").windows.parameters())
    shares = np.exp(alone @ query)
    expected = (shares[:, None] * alone).sum(0) / shares.sum()
    np.testing.assert_allclose(model.embed(TEXTS[5], "mood"), expected, atol=1e-5)
    np.testing.assert_allclose(model.embed(TEXTS, "mood")[5], expected, atol=1e-5)


def test_the_end_of_a_long_text_counts(model: Model) -> None:
    start = " ".join(["a film"] * 20)
    ends = [f"{start} {word}" for word in ("lovely", "dull")]
    one, two = (answer.score for answer in model.predict("mood", ends))
    assert one != two
    one, two = (answer.score for answer in model.predict("plain", ends))
    assert one == two


def test_evaluation_reads_windows(model: Model) -> None:
    data = model.evaluate()
    texts = [row[0] for row in model.texts("mood", "dev")]
    expected = [list((answer.probabilities or {}).values()) for answer in model.predict("mood", texts)]
    np.testing.assert_allclose(data.predictions["mood"], expected, atol=1e-6)
