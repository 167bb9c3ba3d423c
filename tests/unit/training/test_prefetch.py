"""Batches made ahead are those that would be made when needed."""

from pathlib import Path

import numpy as np
import pytest

from tests.tiny import recipe_content
from weft.build import assemble
from weft.foundation.values import Part, Window
from weft.recipes.recipe import parse_recipe
from weft.training.prefetch import Ahead


@pytest.fixture
def ahead(tiny: Path) -> Ahead:
    made = assemble(parse_recipe(recipe_content(tiny), "ahead"))
    return Ahead({name: data.train for name, data in made.data.items()})


def test_a_prepared_batch_is_the_same(ahead: Ahead) -> None:
    task, rows = next(iter(ahead.datasets)), np.array([3, 1, 2])
    part = Part(task, 0, rows)
    ahead.prepare(Window(7, (part,)))
    prepared, made = ahead.batch(7, part), ahead.batch(7, part)
    assert prepared.rows.tolist() == made.rows.tolist()
    assert prepared.target.tolist() == made.target.tolist()
    assert prepared.texts[0].ids.tolist() == made.texts[0].ids.tolist()


def test_the_present_window_stays_while_the_next_is_made(ahead: Ahead) -> None:
    task = next(iter(ahead.datasets))
    windows = [Window(step, (Part(task, 0, np.array([step])),)) for step in range(4)]
    for window in windows:
        ahead.prepare(window)
        assert sorted({step for step, _, _ in ahead._coming}) == [
            step for step in (window.step - 1, window.step) if step >= 0
        ]


def test_another_step_gets_its_own_rows(ahead: Ahead) -> None:
    task = next(iter(ahead.datasets))
    ahead.prepare(Window(7, (Part(task, 0, np.array([3, 1, 2])),)))
    assert sorted(ahead.batch(8, Part(task, 0, np.array([0, 4]))).rows.tolist()) == [0, 4]


def test_a_fault_of_the_thread_is_not_lost(ahead: Ahead) -> None:
    part = Part(next(iter(ahead.datasets)), 0, np.array([10**6]))
    ahead.prepare(Window(0, (part,)))
    with pytest.raises(IndexError):
        ahead.batch(0, part)
