from hypothesis import given
from hypothesis import strategies as st

from weft.schedules.streams import BatchStream, SampleStream, batches_in

sizes = st.integers(1, 50)
batch_sizes = st.integers(1, 12)


@given(sizes, batch_sizes, st.integers(0, 5))
def test_a_pass_of_a_stream_is_every_row_once(size: int, batch_size: int, seed: int) -> None:
    stream = BatchStream("t", size, batch_size, False, (seed, 0))
    orders = []
    for done in range(2):
        batches = [stream.batch(done * stream.per_pass + i).tolist() for i in range(stream.per_pass)]
        assert all(len(batch) == batch_size for batch in batches[:-1])
        orders.append([row for batch in batches for row in batch])
        assert sorted(orders[-1]) == list(range(size))
    if size > 8:
        assert orders[0] != orders[1]


@given(sizes, batch_sizes, st.booleans())
def test_samples_are_drawn_once_or_anew(size: int, batch_size: int, drop_last: bool) -> None:
    take = (size + 1) // 2
    for draw in ("once", "epoch"):
        stream = SampleStream("t", size, take, batch_size, drop_last, draw, (1, 0))
        epochs = [{int(row) for i in range(stream.per_epoch) for row in stream.batch(epoch, i)} for epoch in range(6)]
        if not drop_last:
            assert all(len(rows) == take for rows in epochs)
            assert draw == "epoch" or len({frozenset(rows) for rows in epochs}) == 1
            if draw == "epoch" and size > 12:
                assert len({frozenset(rows) for rows in epochs}) > 1


@given(sizes, batch_sizes)
def test_short_batches_are_kept_or_dropped(size: int, batch_size: int) -> None:
    kept, dropped = batches_in(size, batch_size, False), batches_in(size, batch_size, True)
    assert kept * batch_size >= size > (kept - 1) * batch_size
    assert dropped >= 1
    assert dropped in (kept, kept - 1)
    stream = BatchStream("t", size, batch_size, True, (3, 0))
    lengths = {len(stream.batch(i)) for i in range(2 * stream.per_pass)}
    assert lengths == {min(size, batch_size)}
