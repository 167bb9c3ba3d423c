from hypothesis import given
from hypothesis import strategies as st

from weft.data.splits import fold, split_rows

texts = st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.sampled_from("mnopqrstuvw")), min_size=2, max_size=40)


@given(texts, st.floats(0.05, 0.6), st.integers(0, 9))
def test_no_text_stands_on_both_sides_and_no_row_is_lost(
    rows: list[tuple[str, str]], fraction: float, seed: int
) -> None:
    columns = [[a for a, _ in rows], [b.upper() if i % 2 else f" {b}" for i, (_, b) in enumerate(rows)]]
    train, dev = split_rows(columns, fraction, seed)
    assert sorted([*train.tolist(), *dev.tolist()]) == list(range(len(rows)))
    sides = [{fold(column[row]) for column in columns for row in part} for part in (train.tolist(), dev.tolist())]
    assert not sides[0] & sides[1]
    assert len(dev) <= max(1, round(fraction * len(rows)))


def test_the_share_is_met_when_all_texts_differ_and_depends_on_the_seed() -> None:
    columns = [[f"text {i}" for i in range(100)]]
    first = split_rows(columns, 0.2, 1)[1]
    assert len(first) == 20
    assert first.tolist() == split_rows(columns, 0.2, 1)[1].tolist()
    assert first.tolist() != split_rows(columns, 0.2, 2)[1].tolist()
