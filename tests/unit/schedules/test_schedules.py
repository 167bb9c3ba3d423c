"""How often each schedule shows each row, over random sizes, batch sizes, epochs and seeds."""

from collections import Counter
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.registry import variants
from weft.foundation.errors import UserError
from weft.schedules import ScheduleConfig
from weft.schedules.base import Feed, ScheduleOptions
from weft.schedules.by_size import AnnealedConfig, ProportionalConfig, SquareRootConfig
from weft.schedules.plan import Plan, SegmentPlan, Stretched
from weft.schedules.repeat_capped import RepeatCappedConfig
from weft.schedules.sequential import SequentialConfig
from weft.schedules.sources import separate
from weft.schedules.staggered import StaggeredConfig
from weft.testing.schedules import check_plan

SCHEDULES = variants(ScheduleConfig)
BY_SIZE = ("proportional", "square-root", "annealed")

feeds = st.builds(
    lambda sets, epochs, seed: Feed(
        {f"t{i}": size for i, (size, _) in enumerate(sets)},
        {f"t{i}": batch for i, (_, batch) in enumerate(sets)},
        epochs,
        seed,
    ),
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(3, 4),
    st.integers(0, 99),
)
accumulations = st.integers(1, 3)


def config(name: str) -> ScheduleOptions:
    return SCHEDULES[name]()  # type: ignore[return-value]


def plan_of(name: str, feed: Feed, accumulate: int = 1) -> SegmentPlan:
    return SegmentPlan([config(name).segments(feed)], accumulate, separate(feed.sizes))  # type: ignore[attr-defined]


def batches(feed: Feed, task: str) -> int:
    return ceil(feed.sizes[task] / feed.batch_sizes[task])


def by_epoch(plan: Plan) -> list[dict[str, Counter[int]]]:
    """How often each row of each task is seen in each epoch."""
    epochs: list[dict[str, Counter[int]]] = [{} for _ in plan.epoch_ends]
    for step in range(plan.steps):
        for part in plan.window(step).parts:
            epochs[plan.epoch(step) - 1].setdefault(part.task, Counter()).update(part.rows.tolist())
    return epochs


def in_all(plan: Plan, feed: Feed) -> dict[str, list[int]]:
    """How often each row of each task is seen in the whole run."""
    total: dict[str, Counter[int]] = {task: Counter() for task in feed.sizes}
    for epoch in by_epoch(plan):
        for task, counts in epoch.items():
            total[task].update(counts)
    return {task: [counts[row] for row in range(feed.sizes[task])] for task, counts in total.items()}


def once(feed: Feed, task: str) -> Counter[int]:
    return Counter(dict.fromkeys(range(feed.sizes[task]), 1))


def is_even(counts: list[int]) -> bool:
    return max(counts) - min(counts) <= 1


@pytest.mark.parametrize("name", SCHEDULES)
@given(feed=feeds, accumulate=accumulations)
def test_what_holds_for_every_schedule(name: str, feed: Feed, accumulate: int) -> None:
    plan = check_plan(config(name), feed, accumulate)
    parts = [part for step in range(plan.steps) for part in plan.window(step).parts]
    assert name == "full-data" or all(len(part.rows) <= feed.batch_sizes[part.task] for part in parts)
    if name not in BY_SIZE:  # chance decides there
        assert all(max(counts) > 0 for counts in in_all(plan, feed).values()), "a task starves"


@pytest.mark.parametrize("name", SCHEDULES)
@given(feed=feeds)
def test_accumulation_only_regroups(name: str, feed: Feed) -> None:
    def stream(plan: Plan) -> list[tuple[str, list[int]]]:
        return [(p.task, p.rows.tolist()) for s in range(plan.steps) for p in plan.window(s).parts]

    assert stream(plan_of(name, feed, 1)) == stream(plan_of(name, feed, 3))


@given(feed=feeds)
def test_sequential(feed: Feed) -> None:
    order = tuple(reversed(list(feed.sizes)))
    plan = SegmentPlan([SequentialConfig(order=order).segments(feed)], 2, separate(feed.sizes))
    tasks = [plan.window(step).tasks for step in range(plan.steps)]
    assert all(len(window) == 1 for window in tasks)
    assert list(dict.fromkeys(tasks)) == [(task,) for task in order]
    assert tasks == sorted(tasks, key=lambda window: order.index(window[0]))
    assert all(set(counts) == {feed.epochs} for counts in in_all(plan, feed).values())
    assert len(plan.epoch_ends) == feed.epochs * len(feed.sizes)


@given(feed=feeds)
def test_independent_and_epoch_round_robin(feed: Feed) -> None:
    together, turns = plan_of("independent", feed), plan_of("epoch-round-robin", feed)
    for epoch in by_epoch(together):
        assert epoch == {task: once(feed, task) for task in feed.sizes}
    for number, epoch in enumerate(by_epoch(turns)):
        task = list(feed.sizes)[number % len(feed.sizes)]
        assert epoch == {task: once(feed, task)}


@given(feed=feeds)
def test_batch_round_robin(feed: Feed) -> None:
    plan = plan_of("batch-round-robin", feed)
    shortest = min(feed.sizes, key=lambda task: batches(feed, task))
    for epoch in by_epoch(plan):
        assert epoch[shortest] == once(feed, shortest)
    assert all(plan.window(step).tasks == tuple(feed.sizes) for step in range(plan.steps))
    assert all(is_even(counts) for counts in in_all(plan, feed).values())


@given(feed=feeds)
def test_alternating_takes_the_batches_of_batch_round_robin_one_at_a_time(feed: Feed) -> None:
    alternating, together = plan_of("alternating", feed), plan_of("batch-round-robin", feed)
    assert by_epoch(alternating) == by_epoch(together)
    windows = [alternating.window(step) for step in range(alternating.steps)]
    assert [window.tasks for window in windows] == [(task,) for task in feed.sizes] * together.steps
    expected = [part.rows.tolist() for step in range(together.steps) for part in together.window(step).parts]
    assert [part.rows.tolist() for window in windows for part in window.parts] == expected


@pytest.mark.parametrize("name", ["balanced", "capped"])
@pytest.mark.parametrize("draw", ["once", "epoch"])
@given(feed=feeds)
def test_balanced_and_capped(name: str, draw: str, feed: Feed) -> None:
    plan = SegmentPlan([SCHEDULES[name](draw=draw).segments(feed)], 1, separate(feed.sizes))  # type: ignore[attr-defined,call-arg]
    smallest = min(feed.sizes.values())
    epochs = by_epoch(plan)
    for epoch in epochs:
        for task in feed.sizes:
            assert epoch[task].total() == len(epoch[task]) == smallest
    if draw == "once":
        assert all(set(epoch[task]) == set(epochs[0][task]) for epoch in epochs for task in feed.sizes)
    alone = all(len(plan.window(step).tasks) == 1 for step in range(plan.steps))
    assert alone == (name == "capped" or len(feed.sizes) == 1)


@given(feed=feeds)
def test_full_data(feed: Feed) -> None:
    plan = plan_of("full-data", feed)
    largest = max(feed.sizes, key=feed.sizes.__getitem__)
    rounds = batches(feed, largest)
    for epoch in by_epoch(plan):
        assert epoch[largest] == once(feed, largest)
    for task, size in feed.sizes.items():
        if task != largest:
            wanted = max(1, round(size / rounds))
            assert len(plan.window(0).parts[list(feed.sizes).index(task)].rows) == min(wanted, size)
    assert all(is_even(counts) for counts in in_all(plan, feed).values())


def test_full_data_with_the_sizes_of_the_first_report() -> None:
    sizes = {"paraphrase": 141498, "sentiment": 8544, "similarity": 6040}
    plan = plan_of("full-data", Feed(sizes, dict.fromkeys(sizes, 32), 1, 1))
    assert {part.task: len(part.rows) for part in plan.window(5).parts} == {
        "paraphrase": 32,
        "sentiment": 2,
        "similarity": 1,
    }
    assert plan.steps == 4422


@given(feed=feeds)
def test_sampled(feed: Feed) -> None:
    _check_sampled(by_epoch(plan_of("sampled", feed)), feed)


def _check_sampled(epochs: list[dict[str, Counter[int]]], feed: Feed) -> None:
    largest = max(feed.sizes, key=lambda task: batches(feed, task))
    small = [task for task in feed.sizes if task != largest]
    rounds = max((batches(feed, task) for task in small), default=batches(feed, largest))
    for epoch in epochs:
        assert all(epoch[task] == once(feed, task) for task in small)
        assert max(epoch[largest].values()) == 1
        assert len(epoch[largest]) == min(rounds * feed.batch_sizes[largest], feed.sizes[largest])


@given(feed=feeds)
def test_max_size_cycle(feed: Feed) -> None:
    plan = plan_of("max-size-cycle", feed)
    largest = max(feed.sizes, key=lambda task: batches(feed, task))
    assert all(epoch[largest] == once(feed, largest) for epoch in by_epoch(plan))
    assert all(plan.window(step).tasks == tuple(feed.sizes) for step in range(plan.steps))
    assert all(is_even(counts) for counts in in_all(plan, feed).values())


@given(feed=feeds, repeats=st.integers(1, 3))
def test_repeat_capped(feed: Feed, repeats: int) -> None:
    plan = SegmentPlan([RepeatCappedConfig(repeats=repeats).segments(feed)], 1, separate(feed.sizes))
    rounds = max(batches(feed, task) for task in feed.sizes)
    assert plan.steps == rounds * feed.epochs
    for task in feed.sizes:
        turns = sum(task in plan.window(step).tasks for step in range(rounds))
        assert turns == min(rounds, repeats * batches(feed, task))
    assert all(is_even(counts) for counts in in_all(plan, feed).values())
    exact = [task for task in feed.sizes if repeats * batches(feed, task) <= rounds]
    for epoch in by_epoch(plan):
        assert all(set(epoch[task].values()) == {repeats} for task in exact)


@given(feed=feeds, first_epochs=st.integers(1, 2))
def test_staggered(feed: Feed, first_epochs: int) -> None:
    plan = SegmentPlan([StaggeredConfig(first="t0", first_epochs=first_epochs).segments(feed)], 1, separate(feed.sizes))
    epochs = by_epoch(plan)
    assert len(epochs) == feed.epochs
    assert all(epoch == {"t0": once(feed, "t0")} for epoch in epochs[:first_epochs])
    _check_sampled(epochs[first_epochs:], feed)


def test_a_large_budget_keeps_the_share_of_the_task_that_goes_ahead() -> None:
    sizes, batch_sizes = {"a": 40, "b": 20}, {"a": 4, "b": 4}
    for times in (1, 4):
        feed = Feed(sizes, batch_sizes, 5 * times, 1, times=times)
        plan = SegmentPlan([StaggeredConfig(first_epochs=2).segments(feed)], 1, separate(feed.sizes))
        alone = sum(plan.window(step).tasks == ("a",) for step in range(plan.steps))
        assert alone / plan.steps == pytest.approx(20 / 35)


@pytest.mark.parametrize("name", BY_SIZE)
@given(feed=feeds)
def test_by_size_takes_one_task_at_a_time_and_its_rows_in_turn(name: str, feed: Feed) -> None:
    plan = plan_of(name, feed)
    assert plan.steps == feed.epochs * sum(batches(feed, task) for task in feed.sizes)
    assert all(len(plan.window(step).tasks) == 1 for step in range(plan.steps))
    assert all(is_even(counts) for counts in in_all(plan, feed).values())


@pytest.mark.parametrize(
    ("chosen", "exponents"),
    [
        (ProportionalConfig, {1: 1.0, 3: 1.0, 5: 1.0}),
        (SquareRootConfig, {1: 0.5, 3: 0.5, 5: 0.5}),
        (AnnealedConfig, {1: 1.0, 3: 0.6, 5: 0.2}),
    ],
)
def test_shares_of_tasks_follow_the_formula(chosen: type, exponents: dict[int, float]) -> None:
    sizes = {"large": 9000, "middle": 900, "small": 300}
    n = 4000
    feed = Feed(sizes, dict.fromkeys(sizes, 10), 5, 7)
    plan = SegmentPlan([chosen(rounds_per_epoch=n).segments(feed)], 1, separate(feed.sizes))
    for epoch, alpha in exponents.items():
        drawn = Counter(plan.window((epoch - 1) * n + i).tasks[0] for i in range(n))
        weights = np.array(list(sizes.values())) ** alpha
        for task, share in zip(sizes, weights / weights.sum(), strict=True):
            error = (share * (1 - share) / n) ** 0.5
            assert abs(drawn[task] / n - share) < 4 * error, (epoch, task)


@pytest.mark.parametrize("name", SCHEDULES)
@given(feed=feeds)
def test_short_batches_can_be_dropped(name: str, feed: Feed) -> None:
    plan = SegmentPlan([SCHEDULES[name](drop_last=True).segments(feed)], 1, separate(feed.sizes))  # type: ignore[attr-defined,call-arg]
    smallest = min(feed.sizes.values())
    for step in range(plan.steps):
        for part in plan.window(step).parts:
            rows = smallest if name in ("balanced", "capped") else feed.sizes[part.task]
            if name == "full-data":
                assert len(part.rows) > 0
            else:
                assert len(part.rows) == min(feed.batch_sizes[part.task], rows)


@pytest.mark.parametrize("name", SCHEDULES)
@given(feed=feeds, steps=st.integers(1, 50))
def test_a_budget_takes_evenly_spaced_windows(name: str, feed: Feed, steps: int) -> None:
    plan = plan_of(name, feed)
    steps = min(steps, plan.steps)
    short = Stretched(plan, steps)
    assert short.steps == short.epoch_ends[-1] == short.phase_ends[-1] == steps
    assert short.evaluations == (steps,)
    sources = [step * plan.steps // steps for step in range(steps)]
    assert len(set(sources)) == steps
    for step, source in enumerate(sources):
        assert short.window(step).step == step
        assert short.window(step).parts[0].rows.tolist() == plan.window(source).parts[0].rows.tolist()
        assert short.epoch(step) == plan.epoch(source)


def test_phases_follow_each_other_over_one_step() -> None:
    feed = Feed({"a": 6, "b": 4}, {"a": 2, "b": 2}, 2, 1)
    first, second = config("independent").segments(feed), config("batch-round-robin").segments(feed)  # type: ignore[attr-defined]
    plan = SegmentPlan([first, second], 1, separate(feed.sizes))
    assert plan.phase_ends == (10, 14)
    assert [plan.phase(step) for step in range(plan.steps)] == [0] * 10 + [1] * 4
    assert Stretched(plan, 7).phase_ends == (5, 7)
    other = Feed({"a": 6, "b": 4}, {"a": 2, "b": 2}, 2, 1, phase=1)
    assert (
        plan_of("independent", feed).window(0).parts[0].rows.tolist()
        != plan_of("independent", other).window(0).parts[0].rows.tolist()
    )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (SequentialConfig(order=("a", "c")), "schedule.order: found a, c, expected each of a, b once"),
        (StaggeredConfig(first="c"), "schedule.first: found 'c', expected one of a, b"),
        (StaggeredConfig(first_epochs=3), "schedule.first_epochs: found 3, but the run has 3 epochs"),
    ],
)
def test_schedules_that_do_not_fit_the_tasks(chosen: ScheduleOptions, message: str) -> None:
    with pytest.raises(UserError, match=message):
        chosen.segments(Feed({"a": 6, "b": 4}, {"a": 2, "b": 2}, 3, 1))  # type: ignore[attr-defined]


@pytest.mark.parametrize("batch_sizes", [(16, 16, 10), (16, 16, 16), (4, 32, 8)])
def test_proportional_gives_every_set_the_same_number_of_passes(batch_sizes: tuple[int, ...]) -> None:
    """Over many epochs each set is passed over as often as there are epochs, within what chance allows."""
    sizes = {"a": 850, "b": 1400, "c": 600}
    feed = Feed(sizes, dict(zip(sizes, batch_sizes, strict=True)), 60, 5)
    plan = plan_of("proportional", feed)
    seen = Counter(part.task for step in range(plan.steps) for part in plan.window(step).parts for _ in part.rows)
    for task, size in sizes.items():
        assert seen[task] / size / feed.epochs == pytest.approx(1.0, abs=0.06)
