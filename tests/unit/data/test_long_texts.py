"""What is read of texts that do not fit into a sequence."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data.long_texts import LongTextsConfig
from weft.data.long_texts.head_tail import HeadTailConfig
from weft.data.long_texts.truncate import TRUNCATE
from weft.data.long_texts.windows import WindowsConfig
from weft.data.readings import Reader, pack
from weft.data.template import Template

BERT = Template.usual(2, 3)
WAYS = [TRUNCATE, HeadTailConfig(), HeadTailConfig(head=1), WindowsConfig(), WindowsConfig(overlap=0.9, most=3)]


def text(length: int, first: int = 100) -> np.ndarray:
    return np.arange(first, first + length, dtype=np.int32)


def test_head_and_tail_by_hand() -> None:
    (kept,) = HeadTailConfig(head=0.25).pieces(text(20), 8)
    assert kept.tolist() == [100, 101, 114, 115, 116, 117, 118, 119]
    assert HeadTailConfig(head=1).pieces(text(20), 8)[0].tolist() == text(8).tolist()
    assert HeadTailConfig(head=0).pieces(text(20), 8)[0].tolist() == text(8, 112).tolist()


def test_the_default_head_is_that_of_the_paper() -> None:
    """Sun et al. (2019): 128 tokens of the head and 382 of the tail, of 512 with [CLS] and [SEP]."""
    (kept,) = HeadTailConfig().pieces(text(2000, 0), 510)
    assert kept.tolist() == [*range(128), *range(2000 - 382, 2000)]


def test_windows_by_hand() -> None:
    windows = WindowsConfig(overlap=0.5).pieces(text(20, 0), 8)  # every 4 tokens at most: 0, 4, 8, 12
    assert [window.tolist() for window in windows] == [list(range(start, start + 8)) for start in (0, 4, 8, 12)]
    windows = WindowsConfig(overlap=0.5).pieces(text(13, 0), 8)  # three windows of (13 + 2 * 4) / 3 = 7 tokens
    assert [window.tolist() for window in windows] == [list(range(start, start + 7)) for start in (0, 3, 6)]
    windows = WindowsConfig(overlap=0.5, most=2).pieces(text(20, 0), 8)
    assert [window.tolist() for window in windows] == [list(range(8)), list(range(12, 20))]


@given(st.integers(0, 300), st.integers(1, 40), st.floats(0, 0.99), st.integers(1, 30))
def test_windows_cover_the_text(length: int, room: int, overlap: float, most: int) -> None:
    ways = WindowsConfig(overlap=overlap, most=most)
    windows = ways.pieces(text(length, 0), room)
    lengths = np.array([length])
    assert len(windows) == ways.counts(lengths, room)[0] <= most
    assert len({len(window) for window in windows}) == 1
    assert len(windows[0]) <= room
    if length <= room:
        assert [window.tolist() for window in windows] == [list(range(length))]
    read = {int(token) for window in windows for token in window}
    assert ways.is_cut(lengths, room)[0] == (read != set(range(length)))
    if 1 < len(windows) < most:
        overlaps = [len(set(one) & set(two)) for one, two in pairwise(window.tolist() for window in windows)]
        least = min(int(overlap * room), room - 1)
        assert min(overlaps) >= least
        assert (len(windows) - 1) * (room - least) + least < length  # one window fewer would not do
    if most > 1 and length > room:
        assert windows[0][0] == 0
        assert windows[-1][-1] == length - 1


@pytest.mark.parametrize("ways", WAYS, ids=repr)
@given(a=st.integers(0, 90), b=st.integers(0, 90))
def test_lengths_and_cuts_are_known_without_building_sequences(ways: LongTextsConfig, a: int, b: int) -> None:
    lengths = [np.array([a]), np.array([b])]
    for reading in ("single", "bi", "cross", "concat"):
        if reading in ("cross", "concat") and not ways.one_sequence:
            continue
        reader = Reader(reading, BERT, 16, ways)
        own = lengths[: reader.texts]
        texts = [text(a), text(b, 500)][: reader.texts]
        sequences = reader.sequences(texts[0], texts[1] if reader.texts == 2 else None)
        assert reader.token_counts(own).tolist() == [sum(len(s.ids) for s in sequences)]
        read = {int(token) for sequence in sequences for token in sequence.ids} - {2, 3}
        assert reader.is_cut(own).tolist() == [len(read) < sum(len(each) for each in texts)]
        assert all(len(s.ids) <= 16 * s.windows for s in sequences)


@pytest.mark.parametrize("ways", WAYS, ids=repr)
def test_a_text_that_fits_is_read_as_ever(ways: LongTextsConfig) -> None:
    for reading in ("single", "bi"):
        second = text(14) if reading == "bi" else None
        own, plain = (Reader(reading, BERT, 16, way).sequences(text(9), second) for way in (ways, TRUNCATE))
        assert [s.key for s in own] == [s.key for s in plain]
        assert pack(own).windows is None


def test_both_texts_of_a_long_pair_lose_their_middle() -> None:
    (sequence,) = Reader("cross", BERT, 15, HeadTailConfig(head=0.5)).sequences(text(20), text(30, 500))
    assert sequence.ids.tolist() == [2, 100, 101, 102, 117, 118, 119, 3, 500, 501, 502, 527, 528, 529, 3]
    assert sequence.of_second == 7


def test_windows_are_packed_as_sequences_of_one_text() -> None:
    reader = Reader("single", BERT, 6, WindowsConfig(overlap=0.5))
    packed = pack([reader.sequences(text(length), None)[0] for length in (3, 8)])
    assert packed.ids.tolist() == [
        *(2, 100, 101, 102, 3),
        *(2, 100, 101, 102, 103, 3),
        *(2, 102, 103, 104, 105, 3),
        *(2, 104, 105, 106, 107, 3),
    ]
    assert packed.lengths == (5, 6, 6, 6)
    assert packed.windows == (1, 3)
    assert packed.by_text.owners.tolist() == [0, 1, 1, 1]


def test_equal_readers_are_equal_keys() -> None:
    """Tasks are grouped by what they read."""
    ways = [Reader("single", BERT, 16, way) for way in (*WAYS, WindowsConfig(), HeadTailConfig(head=0.25))]
    assert len(set(ways)) == len(WAYS)
