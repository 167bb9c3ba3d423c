from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tiny import recipe
from weft.build import read_data
from weft.data import sources
from weft.data.readings import TokenSequence
from weft.data.sources import find_sources
from weft.data.tokenizer import Tokenizer
from weft.inference import passes
from weft.inference.engine import TorchEngine
from weft.inference.passes import by_length, run_over
from weft.tasks.building import build_network


def test_groups_hold_every_sequence_once_within_the_budget() -> None:
    sequences = [TokenSequence(np.zeros(length, dtype=np.int64)) for length in (9, 3, 30, 1, 4, 4, 12)]
    groups = list(by_length(sequences, tokens=13))
    assert sorted(i for group in groups for i in group) == list(range(7))
    for group in groups:
        assert len(group) == 1 or sum(len(sequences[i][0]) for i in group) <= 13


def test_answers_do_not_depend_on_company_or_order(tiny: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    data = read_data(recipe(tiny), Tokenizer.load(tiny / "body"))
    network = build_network(recipe(tiny), {name: d.labels for name, d in data.items()}, tiny / "body")
    engine = TorchEngine(network.eval(), torch.device("cpu"))
    for name, task in data.items():
        rows = [task.dev.sequences(i) for i in range(len(task.dev))]
        rows += rows[:3]  # repeated texts are encoded once
        together = engine.answers(name, rows)
        alone = np.concatenate([engine.answers(name, [row]) for row in rows])
        np.testing.assert_allclose(together, alone, atol=1e-6)
        monkeypatch.setattr(passes, "TOKENS", 20)
        np.testing.assert_allclose(engine.answers(name, rows[::-1])[::-1], alone, atol=1e-6)


def test_a_set_in_parts_is_the_set(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read_data(recipe(tiny), Tokenizer.load(tiny / "body"))
    network = build_network(recipe(tiny), {name: d.labels for name, d in data.items()}, tiny / "body")
    for task in data.values():
        (source,) = find_sources({task.dev.task: task.dev})
        whole = run_over(network, source, torch.device("cpu"))[task.dev.task]
        monkeypatch.setattr(sources, "PART", 5)
        parts = run_over(network, source, torch.device("cpu"))[task.dev.task]
        monkeypatch.undo()
        np.testing.assert_allclose(parts.predictions, whole.predictions, atol=1e-6)
        assert parts.loss == pytest.approx(whole.loss, abs=1e-6)
        assert parts.plane.points.shape == whole.plane.points.shape
        assert network.training  # evaluation happens between steps
