import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from tests.tiny import LETTERS, SPECIAL
from weft.data.readings import Reader, longest_first, pack
from weft.data.template import Template

CLS, SEP = 2, 3
BERT = Template.usual(CLS, SEP)


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def test_single_bi_and_cross() -> None:
    first, second = ids(7, 8), ids(9)
    alone = Reader("single", BERT, 10).sequences(first, None)
    assert [s.ids.tolist() for s in alone] == [[CLS, 7, 8, SEP]]
    both = Reader("bi", BERT, 10).sequences(first, second)
    assert [s.ids.tolist() for s in both] == [[CLS, 7, 8, SEP], [CLS, 9, SEP]]
    ((together, of_second, *_),) = Reader("cross", BERT, 10).sequences(first, second)
    assert together.tolist() == [CLS, 7, 8, SEP, 9, SEP]
    assert of_second == 2
    ((run_on, of_second, *_),) = Reader("concat", BERT, 10).sequences(first, second)
    assert run_on.tolist() == [CLS, 7, 8, 9, SEP]
    assert of_second == 0
    ((cut, *_),) = Reader("concat", BERT, 8).sequences(ids(*range(10, 19)), second)
    assert cut.tolist() == [CLS, 10, 11, 12, 13, 14, 9, SEP]


def test_packing_puts_segments_on_the_second_text() -> None:
    reader = Reader("cross", BERT, 10)
    encoded = pack(reader.sequences(ids(7, 8), ids(9)) + reader.sequences(ids(7), ids(8, 9)))
    assert encoded.ids.tolist() == [CLS, 7, 8, SEP, 9, SEP, CLS, 7, SEP, 8, 9, SEP]
    assert encoded.segments.tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    assert encoded.lengths == (6, 6)


_VOCABULARY = {entry: n for n, entry in enumerate([*SPECIAL, *LETTERS])}
_LIBRARY = RustTokenizer.from_str(BertWordPieceTokenizer(_VOCABULARY).to_str())


@given(st.integers(0, 30), st.integers(0, 30), st.integers(8, 40))
def test_cross_cuts_as_the_tokenizers_library_does(first: int, second: int, max_length: int) -> None:
    _LIBRARY.enable_truncation(max_length, strategy="longest_first")
    a, b = " ".join("abcdefghij"[i % 10] for i in range(first)), " ".join("klmnopqrst"[i % 10] for i in range(second))
    expected = _LIBRARY.encode(a, b)
    _LIBRARY.no_truncation()
    parts = [np.array(_LIBRARY.encode(text, add_special_tokens=False).ids, dtype=np.int32) for text in (a, b)]
    ((sequence, of_second, *_),) = Reader("cross", BERT, max_length).sequences(*parts)
    assert sequence.tolist() == expected.ids
    assert of_second == sum(expected.type_ids)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_longest_first_fills_the_room_and_never_cuts_the_shorter_below_half(a: int, b: int, room: int) -> None:
    n, m = longest_first(a, b, room)
    assert n <= a
    assert m <= b
    assert n + m == min(a + b, room)
    assert min(n, m) >= min(a, b, room // 2)


def test_lengths_are_known_without_building_sequences() -> None:
    lengths = [np.array([1, 8, 9, 4]), np.array([3, 0, 0, 4])]
    rows = [(np.zeros(a, dtype=np.int32), np.zeros(b, dtype=np.int32)) for a, b in zip(*lengths, strict=True)]
    for reading in ("single", "bi", "cross", "concat"):
        reader = Reader(reading, BERT, 10)
        own = lengths[: reader.texts]
        built = [sum(len(s.ids) for s in reader.sequences(*row)) for row in rows]
        if reading == "single":
            built = [sum(len(s.ids) for s in reader.sequences(row[0], None)) for row in rows]
        assert reader.token_counts(own).tolist() == built
    assert Reader("single", BERT, 10).is_cut(lengths[:1]).tolist() == [False, False, True, False]
    assert Reader("cross", BERT, 10).is_cut(lengths).tolist() == [False, True, True, True]
