"""A limit that all share: never exceeded, given back, and large requests always leave room for small ones."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.admission import Room
from weft.serving.refusals import Refusal


@given(st.integers(2, 10_000), st.lists(st.integers(1, 10_000), max_size=30))
def test_large_requests_leave_room(limit: int, sizes: list[int]) -> None:
    room = Room(limit, "characters")
    with ExitStack() as held:
        for size in sizes:
            before = room.used
            if room.fits(size):
                held.enter_context(room.hold(size))
                assert before == 0 or room.limit - room.used >= size  # as much as it took is left
            else:
                with pytest.raises(Refusal), room.hold(size):
                    pass
                assert room.used == before
        assert room.used <= max([limit, *sizes[:1]])  # a first one may be larger than the limit: nobody waits for it
    assert room.used == 0


def test_what_was_taken_is_given_back_after_an_error() -> None:
    room = Room(100, "characters")
    with pytest.raises(ZeroDivisionError), room.hold(60):
        raise ZeroDivisionError
    assert room.used == 0


def test_a_refusal_says_what_is_in_use_and_when_to_retry() -> None:
    room = Room(1000, "characters")
    with room.hold(900), pytest.raises(Refusal, match="900 of 1,000 characters are in use") as refusal, room.hold(51):
        pass
    assert refusal.value.status == 429
    assert refusal.value.headers == {"Retry-After": "1"}
    with room.hold(900), room.hold(50):
        assert room.used == 950
