from pathlib import Path

import numpy as np
import pytest

from tests.tiny import recipe
from weft.build import read_data
from weft.data import sources
from weft.data.sources import find_sources
from weft.data.tokenizer import Tokenizer


@pytest.mark.parametrize("part", [1, 2, 5, 7, 8192])
def test_parts_hold_every_row_once_and_are_spread_over_the_set(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(sources, "PART", part)
    for task in read_data(recipe(tiny), Tokenizer.load(tiny / "body")).values():
        rows = len(task.dev)
        seen = np.zeros(rows, dtype=int)
        (source,) = find_sources({"one": task.dev})
        for numbers in source.parts():
            sequences = source.part_sequences(numbers)
            seen[numbers] += 1
            assert len(numbers) == len(sequences) <= part
            assert len(numbers) == 1 or numbers[0] < (rows - 1) / 2 < numbers[-1]
            for number, sequence in zip(numbers, sequences, strict=True):
                for (ids, *_), (expected, *_) in zip(sequence, task.dev.sequences(int(number)), strict=True):
                    np.testing.assert_array_equal(ids, expected)
        assert (seen == 1).all()
