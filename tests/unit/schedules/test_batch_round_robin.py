from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from weft.schedules.base import Feed, Stretched
from weft.schedules.batch_round_robin import BatchRoundRobin
from weft.schedules.streams import BatchStream

feeds = st.builds(
    lambda sizes, epochs, accumulate, seed: Feed(
        {f"t{i}": size for i, (size, _) in enumerate(sizes)},
        {f"t{i}": batch for i, (_, batch) in enumerate(sizes)},
        epochs,
        accumulate,
        seed,
    ),
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 99),
)


@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 5))
def test_a_pass_of_a_stream_is_every_row_once(size: int, batch_size: int, seed: int) -> None:
    stream = BatchStream("t", size, batch_size, seed)
    orders = []
    for done in range(2):
        batches = [stream.batch(done * stream.per_pass + i).tolist() for i in range(stream.per_pass)]
        assert all(len(batch) == batch_size for batch in batches[:-1])
        orders.append([row for batch in batches for row in batch])
        assert sorted(orders[-1]) == list(range(size))
    if size > 8:
        assert orders[0] != orders[1]


@given(feeds)
def test_the_shortest_set_is_seen_once_an_epoch_and_no_larger_row_twice_before_all_once(feed: Feed) -> None:
    plan = BatchRoundRobin(feed)
    seen: dict[str, Counter[int]] = {task: Counter() for task in feed.sizes}
    batches = {task: -(-feed.sizes[task] // feed.batch_sizes[task]) for task in feed.sizes}
    shortest = min(batches, key=batches.__getitem__)
    for step in range(plan.steps):
        window = plan.window(step)
        assert window.tasks == tuple(feed.sizes)
        for part in window.parts:
            seen[part.task].update(part.rows.tolist())
        if step + 1 in plan.epoch_ends:
            epoch = plan.epoch_ends.index(step + 1) + 1
            assert plan.epoch(step) == epoch
            assert seen[shortest] == Counter(dict.fromkeys(range(feed.sizes[shortest]), epoch))
    assert plan.epoch_ends[-1] == plan.steps
    for task, counts in seen.items():
        times = [counts[row] for row in range(feed.sizes[task])]
        assert max(times) - min(times) <= 1
        assert max(times) > 0


@given(feeds)
def test_accumulation_only_regroups(feed: Feed) -> None:
    """The same batches in the same order, several to a window."""
    single = BatchRoundRobin(Feed(feed.sizes, feed.batch_sizes, feed.epochs, 1, feed.seed))
    plan = BatchRoundRobin(feed)

    def stream(source: BatchRoundRobin) -> list[tuple[str, list[int]]]:
        return [(p.task, p.rows.tolist()) for s in range(source.steps) for p in source.window(s).parts]

    assert stream(plan) == stream(single)
    assert all(1 <= len(plan.window(step).micros) <= feed.accumulate for step in range(plan.steps))


@given(feeds, st.integers(1, 50))
def test_a_budget_takes_evenly_spaced_windows(feed: Feed, steps: int) -> None:
    plan = BatchRoundRobin(feed)
    steps = min(steps, plan.steps)
    short = Stretched(plan, steps)
    assert short.steps == short.epoch_ends[-1] == steps
    assert short.evaluations == (steps,)
    sources = [step * plan.steps // steps for step in range(steps)]
    assert len(set(sources)) == steps
    for step, source in enumerate(sources):
        assert short.window(step).step == step
        assert short.window(step).parts[0].rows.tolist() == plan.window(source).parts[0].rows.tolist()
