"""The contract of a schedule."""

from collections.abc import Sequence
from itertools import pairwise

from weft.foundation.values import Window
from weft.schedules.base import Feed, ScheduleOptions
from weft.schedules.plan import SegmentPlan
from weft.schedules.sources import separate
from weft.testing.configs import check_config, require

SIZES = ((12, 5, 30), (1, 40, 7), (8, 8, 8))
BATCHES = ((4, 2, 8), (3, 9, 1), (8, 8, 8))


def check_schedule(config: ScheduleOptions, tasks: Sequence[str] = ("a", "b", "c")) -> None:
    """Check the plans of a schedule for data sets of several sizes.

    `tasks` are at most three names, for a config that names tasks.
    """
    check_config(config)
    for sizes, batches in zip(SIZES, BATCHES, strict=True):
        for number in range(1, len(tasks) + 1) if config.tasks is None else [len(tasks)]:
            names = tasks[:number]
            rows = dict(zip(names, sizes, strict=False))
            chosen = {name: rows[name] for name in config.chosen(names)}
            feed = Feed(chosen, dict(zip(names, batches, strict=False)), epochs=3, seed=7)
            for accumulate in (1, 3):
                check_plan(config, feed, accumulate)


def check_plan(config: ScheduleOptions, feed: Feed, accumulate: int) -> SegmentPlan:
    """Check that a window depends only on its number and contains existing rows. Returns the plan."""
    plan, again = (SegmentPlan([config.segments(feed)], accumulate, separate(feed.sizes)) for _ in range(2))
    where = f"{type(config).__name__} on {dict(feed.sizes)} rows"
    forwards = [_read(again.window(step)) for step in range(again.steps)]
    for step in reversed(range(plan.steps)):  # windows of a second plan, read in reverse order, must be the same
        window = plan.window(step)
        place = f"{where}: step {step}"
        require(_read(window) == forwards[step], f"{place}: a round must depend only on its number")
        require(bool(window.parts), f"{place}: reads no rows")
        require(
            1 <= len(window.micros) <= accumulate,
            f"{place}: has {len(window.micros)} forward passes, expected 1 to {accumulate}",
        )
        for part in window.parts:
            require(part.task in feed.sizes, f"{place}: reads {part.task!r}, which is not in the feed")
            require(len(part.rows) > 0, f"{place}: reads no row of {part.task}")
            inside = part.rows.min() >= 0 and part.rows.max() < feed.sizes[part.task]
            require(bool(inside), f"{place}: reads rows that do not exist in {part.task}")
    ends = plan.epoch_ends
    require(bool(ends) and ends[-1] == plan.steps, f"{where}: the last segment must end an epoch")
    require(all(a < b for a, b in pairwise(ends)), f"{where}: an epoch has no step")
    require(len(ends) % feed.epochs == 0, f"{where}: has {len(ends)} epochs, expected a multiple of {feed.epochs}")
    return plan


def _read(window: Window) -> list[tuple[str, int, list[int]]]:
    return [(part.task, part.micro, part.rows.tolist()) for part in window.parts]
