import torch

from tests.parity.harness import pad, unpad
from weft.foundation.values import DistinctTexts, Encoded, Part, Window


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


def packed(*sequences: list[int], typed: int = 0) -> Encoded:
    ids = torch.tensor([token for sequence in sequences for token in sequence])
    return Encoded(ids, torch.full_like(ids, typed), tuple(map(len, sequences)))


def taken(distinct: DistinctTexts, *texts: Encoded) -> list[list[int]]:
    """The ids of each text, as taken from the pass."""
    assert distinct.places is not None
    assert len(distinct.places) == len(texts)
    return [distinct.encoded.ids[place].tolist() for place in distinct.places]


def test_a_sequence_of_two_batches_is_in_a_pass_once() -> None:
    one, two, three = packed([1, 2], [3, 4, 5]), packed([3, 4, 5], [1, 2], [7]), packed([1, 2], [3, 4, 5])
    distinct = DistinctTexts.of([(one,), (two,), (three,)])
    assert (distinct.encoded.ids.tolist(), distinct.encoded.lengths) == ([1, 2, 3, 4, 5, 7], (2, 3, 1))
    assert taken(distinct, one, two, three) == [one.ids.tolist(), two.ids.tolist(), three.ids.tolist()]
    assert distinct.places is not None
    assert distinct.places[0] == distinct.places[2] == slice(0, 5), "no copy where the order is the same"


def test_equal_rows_of_one_batch_stay_separate() -> None:
    twice, pair = packed([1, 2], [1, 2], [3]), (packed([1, 2]), packed([1, 2]))
    distinct = DistinctTexts.of([(twice,), pair])
    assert distinct.encoded.lengths == (2, 2, 1)
    assert taken(distinct, twice, *pair) == [[1, 2, 1, 2, 3], [1, 2], [1, 2]]
    assert distinct.places is not None
    assert distinct.places[1:] == (slice(0, 2), slice(2, 4))
    assert DistinctTexts.of([pair]).places is None


def test_nothing_changes_without_shared_sequences() -> None:
    """Other tokens, or the same tokens with another token type: the pass is the joined texts."""
    texts = [packed([1, 2], [3]), packed([1, 2], typed=1), packed([2, 1])]
    distinct = DistinctTexts.of([(text,) for text in texts])
    assert distinct.places is None
    assert distinct.encoded.ids.tolist() == Encoded.join(texts).ids.tolist()


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
