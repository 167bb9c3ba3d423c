"""Stored outputs: every row is found in its part, whatever the lengths and the limits of a part."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data import stored
from weft.data.arrays import array_folder, open_array, store_array
from weft.data.stored import StoredLayout, StoredRows

WIDTH = 3


@st.composite
def rows_and_tokens(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Indices in a file, ascending with gaps, and the lengths of one to three sequences of each."""
    rows = np.array(sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=30))), dtype=np.int64)
    sequences = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(2, 9), min_size=sequences * len(rows), max_size=sequences * len(rows)))
    return rows, np.array(lengths, dtype=np.int64).reshape(sequences, len(rows))


def laid_out(rows: np.ndarray, tokens: np.ndarray, depth: int | None, limits: tuple[int, int]) -> StoredLayout:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "PART_ROWS", limits[0])
        patch.setattr(stored, "PART_BYTES", limits[1])
        return StoredLayout(rows, tokens, depth=depth, width=WIDTH, itemsize=4)


def filled(layout: StoredLayout) -> tuple[list[np.ndarray], StoredRows]:
    """Parts in which every number is different, and the same numbers in one array."""
    shapes = [layout.part_shape(number) for number in range(len(layout.starts))]
    values = np.arange(sum(int(np.prod(shape)) for shape in shapes), dtype=np.float32)
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(values[start : start + size].reshape(shape))
        start += size
    return [values.reshape(-1, WIDTH)], StoredRows(layout, parts, np.dtype(np.float64))


@given(rows_and_tokens(), st.integers(1, 12), st.integers(12, 400))
def test_every_row_has_its_own_states(data: tuple[np.ndarray, np.ndarray], most: int, size: int) -> None:
    rows, tokens = data
    layout = laid_out(rows, tokens, 2, (most, size))
    (flat,), found = filled(layout)
    assert layout.bytes == flat.nbytes == tokens.sum() * WIDTH * 4
    for number in range(len(layout.starts)):
        part = layout.part(number)
        assert 1 <= part.stop - part.start <= most
        assert layout.part_shape(number)[0] * WIDTH * 4 <= size or part.stop - part.start == 1
    before = 0
    for place, index in enumerate(rows):
        for sequence, states in enumerate(found.states(int(index))):
            length = int(tokens[sequence, place])
            assert np.array_equal(states, flat[before : before + length])
            before += length
    assert before == len(flat)


@given(rows_and_tokens(), st.integers(1, 12), st.integers(12, 400), st.randoms(use_true_random=False))
def test_vectors_of_rows_in_any_order(
    data: tuple[np.ndarray, np.ndarray], most: int, size: int, random: Random
) -> None:
    rows, tokens = data
    layout = laid_out(rows, tokens, None, (most, size))
    (flat,), found = filled(layout)
    wanted = flat.reshape(len(rows), len(tokens), WIDTH)
    order = list(range(len(rows))) * 2
    random.shuffle(order)
    read = found.vectors(rows[order])
    assert read.dtype == np.float64
    assert np.array_equal(read, wanted[order])
    # the order of a batch that has sequences: sorted by their lengths, equal rows as they come
    sorted_rows = sorted(order, key=lambda place: tokens[:, place].tolist())
    assert rows[order][found.by_length(rows[order])].tolist() == rows[sorted_rows].tolist()


def test_a_row_that_is_not_stored_is_an_error() -> None:
    _, found = filled(laid_out(np.array([2, 5]), np.array([[3, 4]]), None, (4, 400)))
    with pytest.raises(AssertionError, match="only rows that the plan uses"):
        found.vectors(np.array([3]))


def test_a_damaged_array_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    path = array_folder("states") / "x.npy"
    values = np.arange(6.0).reshape(2, 3)
    assert open_array(path) is None
    assert np.array_equal(store_array(values, path), values)
    opened = open_array(path)
    assert opened is not None
    assert np.array_equal(opened, values)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    assert open_array(path) is None
