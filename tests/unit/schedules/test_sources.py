"""Rows of sources and the tasks that ask about them: every asked row is seen as often as its row of the source."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.registry import variants
from weft.foundation.errors import UserError
from weft.foundation.values import Window
from weft.schedules import ScheduleConfig
from weft.schedules.base import Feed, Segment
from weft.schedules.plan import SegmentPlan
from weft.schedules.sequential import SequentialConfig
from weft.schedules.sources import SourceRows, separate
from weft.schedules.staggered import StaggeredConfig
from weft.training.distributed import share_of

SCHEDULES = variants(ScheduleConfig)


def source_of(asked: dict[str, list[bool]]) -> SourceRows:
    """A source of some rows; `asked` says which of them each task asks about."""
    return SourceRows(
        {task: np.where(flags, np.cumsum(flags) - 1, -1) for task, flags in asked.items()}  # rows are numbered in order
    )


@st.composite
def sources(draw: st.DrawFn) -> list[SourceRows]:
    """One to three sources with one to three tasks each. Every row is asked about by a task, and each task asks."""
    names = iter("abcdefghi")
    made = []
    for _ in range(draw(st.integers(1, 3))):
        tasks = [next(names) for _ in range(draw(st.integers(1, 3)))]
        rows = draw(st.integers(1, 25))
        flags = {task: draw(st.lists(st.booleans(), min_size=rows, max_size=rows)) for task in tasks}
        for row in range(rows):
            if not any(flags[task][row] for task in tasks):
                flags[draw(st.sampled_from(tasks))][row] = True
        for task in tasks:
            flags[task][draw(st.integers(0, rows - 1))] = True
        made.append(source_of(flags))
    return made


def feed_of(made: list[SourceRows], epochs: int = 3, seed: int = 3) -> Feed:
    batch_sizes = {source.name: 2 + i for i, source in enumerate(made)}
    sizes = {source.name: len(source) for source in made}
    return Feed(sizes, batch_sizes, epochs, seed, askers={source.name: source.asked for source in made})


def seen_by_task(windows: list[Window]) -> dict[str, Counter[int]]:
    seen: dict[str, Counter[int]] = {}
    for window in windows:
        for part in window.parts:
            seen.setdefault(part.task, Counter()).update(part.rows.tolist())
    return seen


@pytest.mark.parametrize("name", SCHEDULES)
@settings(max_examples=25)
@given(made=sources(), accumulate=st.integers(1, 3))
def test_every_asked_row_is_seen_as_often_as_its_row_is_drawn(
    name: str, made: list[SourceRows], accumulate: int
) -> None:
    segments: list[Segment] = SCHEDULES[name]().segments(feed_of(made))  # type: ignore[attr-defined]
    plan = SegmentPlan([segments], accumulate, made)
    drawn: dict[str, Counter[int]] = {}
    for segment in segments:
        for i in range(segment.rounds):
            for source, rows in segment.round(i):
                drawn.setdefault(source, Counter()).update(rows.tolist())
    windows = [plan.window(step) for step in range(plan.steps)]
    seen = seen_by_task(windows)
    for source in made:
        for task, places in source.places.items():
            counts = {int(places[row]): n for row, n in drawn.get(source.name, Counter()).items() if places[row] >= 0}
            assert seen.get(task, {}) == counts
    for window in windows:
        assert all(len(part.rows) for part in window.parts)
        assert {part.micro for part in window.parts} == set(range(len(window.micros))), "a pass has no row"


@given(made=sources(), count=st.integers(1, 4))
def test_a_row_of_a_source_is_in_one_process_for_all_of_its_tasks(made: list[SourceRows], count: int) -> None:
    segments = SCHEDULES["batch-round-robin"]().segments(feed_of(made))  # type: ignore[attr-defined]
    window = SegmentPlan([segments], 2, made).window(0)
    shares = [share_of(window, rank, count) for rank in range(count)]
    assert sum((Counter(_asked(share)) for share in shares), Counter()) == Counter(_asked(window))
    places = [{(p.source, p.micro, int(place)) for p in share.parts for place in p.places} for share in shares]
    assert sum(map(len, places)) == len(set().union(*places)), "a row is in two processes"


def _asked(window: Window) -> list[tuple[str, int, int]]:
    return [(part.task, part.micro, int(row)) for part in window.parts for row in part.rows]


def test_a_task_that_shares_no_rows_gets_them_as_they_are_drawn() -> None:
    (source,) = separate({"a": 5})
    (part,) = source.parts(1, np.array([3, 0, 4]))
    assert (part.task, part.micro, part.rows.tolist(), part.source) == ("a", 1, [3, 0, 4], "a")


def test_some_tasks_of_a_source_ask_about_some_of_its_rows() -> None:
    source = source_of({"a": [True, False, True, False], "b": [False, True, True, False], "c": [False] * 3 + [True]})
    assert (source.name, len(source), source.asked) == ("a+b+c", 4, {"a": 2, "b": 2, "c": 1})
    two = source.only(["c", "b"])
    assert two is not None
    assert (two.name, len(two)) == ("b+c", 3)
    assert [(part.task, part.rows.tolist(), part.places.tolist()) for part in two.parts(0, np.array([2, 1]))] == [
        ("b", [1], [1]),
        ("c", [0], [0]),
    ]
    assert source.only(["d"]) is None


def test_options_that_name_tasks_of_a_source() -> None:
    made = [source_of({"a": [True] * 4, "b": [True, True, False, False]}), *separate({"c": 3})]
    feed = feed_of(made, epochs=2)
    alone = [one for source in made for task in source.places if (one := source.only([task]))]
    first = SegmentPlan([StaggeredConfig(first="b", first_epochs=1).segments(feed)], 1, [*made, *alone])
    assert first.window(0).tasks == ("b",)
    assert seen_by_task([first.window(step) for step in range(first.epoch_ends[0])]) == {"b": Counter([0, 1])}
    assert set(first.window(first.epoch_ends[0]).tasks) >= {"a", "c"}
    ordered = SegmentPlan([SequentialConfig(order=("c", "b", "a")).segments(feed)], 1, made)
    assert [ordered.window(step).tasks[0] for step in (0, ordered.steps - 1)] == ["c", "a"]
    with pytest.raises(UserError, match="a and b read the same rows and train together; name them one after the other"):
        SequentialConfig(order=("a", "c", "b")).segments(feed)
    with pytest.raises(UserError, match=r"schedule.first: found 'a\+b', expected one of a, b, c"):
        StaggeredConfig(first="a+b").segments(feed)
