import torch

from tests.parity.harness import pad, unpad
from weft.foundation.values import Encoded, Part, Window


def encoded(*lengths: int) -> Encoded:
    total = sum(lengths)
    return Encoded(torch.arange(total), torch.zeros(total, dtype=torch.long), lengths)


def test_positions_owners_and_runs() -> None:
    sequences = encoded(2, 3, 3, 1)
    assert sequences.starts.tolist() == [0, 2, 5, 8]
    assert sequences.owners.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert sequences.positions.tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 0]
    assert sequences.runs == [(1, 2), (2, 3), (1, 1)]


def test_join_keeps_order() -> None:
    joined = Encoded.join([encoded(2), encoded(1, 4)])
    assert joined.lengths == (2, 1, 4)
    assert joined.ids.tolist() == [0, 1, 0, 1, 2, 3, 4]


def test_padding_and_back() -> None:
    sequences = encoded(3, 1, 2)
    ids, mask, _ = pad(sequences)
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert unpad(ids, sequences).tolist() == sequences.ids.tolist()


def test_window_knows_its_tasks_passes_and_counts() -> None:
    rows = torch.arange(3).numpy()
    window = Window(0, (Part("b", 0, rows), Part("a", 0, rows[:1]), Part("b", 1, rows[:2])))
    assert window.tasks == ("b", "a")
    assert [[part.task for part in micro] for micro in window.micros] == [["b", "a"], ["b"]]
    assert window.count("b") == 5
    assert window.count("a") == 1
