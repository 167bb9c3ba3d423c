"""Many questions at once have the answers that each has alone, by both engines."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import weft
from tests.exported import SECONDS, TEXTS, write_model
from weft.export import export
from weft.inference.engine import TorchEngine
from weft.inference.joint import Ask

TASKS = {
    "mood": {"like": "sentiment", "pooling": "mean"},
    "bad": {"like": "sentiment"},
    "same": {"like": "paraphrase"},
    "alike": {"like": "paraphrase", "reading": "bi", "pooling": "mean"},
    "near": {"like": "similarity"},
}


@pytest.fixture(scope="module", params=["torch", "onnx"])
def model(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> weft.Model:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "torch":
        return weft.load(write_model(tiny, folder, TASKS), "cpu")
    own = {name: task for name, task in TASKS.items() if name != "same"}  # every graph takes seconds to trace
    torch_folder = write_model(tiny, folder, own)
    export(torch_folder, "onnx", folder / "onnx")
    return weft.load(folder / "onnx")


def test_many_questions_at_once(model: weft.Model) -> None:
    asks, alone = [], []
    for start in range(0, 9, 3):  # several who ask of the same tasks, with texts that repeat
        for task in model.tasks:
            seconds = None if task in ("mood", "bad") else SECONDS[start : start + 4]
            rows = model.rows(task, TEXTS[start : start + 4], seconds)
            asks.append(Ask(task, rows))
            alone.append(model.engine.answers(task, rows))
            sequences = model.texts_alone(task, TEXTS[start : start + 2])
            asks.append(Ask(task, [[sequence] for sequence in sequences], vectors=True))
            alone.append(model.engine.vectors(task, sequences))
    found = model.engine.together(asks)
    for one, other, ask in zip(found, alone, asks, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-5, err_msg=str(ask.task))


def test_equal_sequences_are_encoded_once(model: weft.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text for two tasks of a reading is one sequence for the body."""
    from weft.inference import onnx_engine, passes

    seen: list[int] = []

    def watch(module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def watched(sequences: Sequence[object], *rest: int) -> Iterable[list[int]]:
            seen.append(len(sequences))
            return real(sequences, *rest)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, name, watched)

    watch(passes, "by_length")
    watch(onnx_engine, "padded_groups")
    asks = [Ask(task, model.rows(task, TEXTS[:3])) for task in ("mood", "bad")]
    asks.append(Ask("mood", asks[0].rows, vectors=True))
    model.engine.together(asks)
    assert seen == [3]


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("of_machine", "calls"), [(1, 1), (2, 2), (5, 4), (6, 3), (8, 4), (11, 2)])
def test_parallel_calls_divide_the_threads(model: weft.Model, of_machine: int, calls: int) -> None:
    torch.set_num_threads(of_machine)
    expected = calls if isinstance(model.engine, TorchEngine) else 1
    assert model.engine.run_in_parallel(4) == expected
    assert torch.get_num_threads() == of_machine // expected


def test_parallel_calls_give_the_same_answers(model: weft.Model) -> None:
    asks = [[Ask(task, model.rows(task, TEXTS, SECONDS))] for task in model.tasks if task not in ("mood", "bad")]
    alone = [model.engine.together(own) for own in asks]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(model.engine.together, asks * 20))
    for own, (expected,) in zip(found, alone * 20, strict=True):
        np.testing.assert_array_equal(own[0], expected)


def test_small_passes_are_favored_without_other_answers(model: weft.Model) -> None:
    asks = [Ask(task, model.rows(task, TEXTS, SECONDS)) for task in model.tasks if task not in ("mood", "bad")]
    before = model.engine.together(asks)
    model.engine.favor_small_passes()
    for values, expected in zip(model.engine.together(asks), before, strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-5)
