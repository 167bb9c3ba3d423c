"""What holds for every variant of every registry, the day it is listed."""

import ast
from itertools import product
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

import weft
from tests.contracts.registry import variants
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.data.labels import Labels
from weft.foundation.errors import UserError
from weft.foundation.randomness import seeded
from weft.foundation.values import Encoded
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.heads.base import HeadShape
from weft.nn.pooling import PoolingConfig
from weft.penalties import PenaltyConfig
from weft.regularizers import RegularizerConfig
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.trackers import TrackerConfig
from weft.training.trainable import TrainableConfig
from weft.weighting import WeightingConfig

SOURCE = Path(weft.__file__).parent
REGISTRIES = {
    "losses": LossConfig,
    "penalties": PenaltyConfig,
    "regularizers": RegularizerConfig,
    "nn/heads": HeadConfig,
    "nn/pooling": PoolingConfig,
    "schedules": ScheduleConfig,
    "surgery": SurgeryConfig,
    "trackers": TrackerConfig,
    "weighting": WeightingConfig,
    "training/trainable.py": TrainableConfig,
}
KINDS = [
    Labels("classification", ("no", "yes")),
    Labels("classification", ("a", "b", "c", "d")),
    Labels("multilabel", ("a", "b", "c")),
    Labels("regression", scaled=True),
]
BODY = BodyShape(vocabulary=9, width=6, layers=2, heads=2, inner=8, positions=12)


def files(room: str) -> list[Path]:
    """A room's files; a small registry is one file."""
    place = SOURCE / room
    return [place] if place.is_file() else sorted(place.glob("*.py"))


@pytest.mark.parametrize("room", REGISTRIES)
def test_every_config_class_in_a_room_is_in_its_union(room: str) -> None:
    """A variant that is written but not listed could never be chosen."""
    listed = {config.__name__ for config in variants(REGISTRIES[room]).values()}
    written = {
        node.name
        for path in files(room)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config")
    }
    assert written == listed


@pytest.mark.parametrize("room", REGISTRIES)
def test_a_variants_file_is_small_and_says_what_it_is(room: str) -> None:
    for path in files(room):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 120, path
        assert ast.get_docstring(ast.parse(text)), path


@pytest.mark.parametrize(
    ("room", "name"), [(room, name) for room, registry in REGISTRIES.items() for name in variants(registry)]
)
def test_configs_refuse_unknown_keys_and_changes(room: str, name: str) -> None:
    config = variants(REGISTRIES[room])[name]
    needed: dict[str, object] = {"layers": {"layers": (0,)}, "fixed": {"weights": {"a": 1.0}}}.get(name, {})
    with pytest.raises(ValidationError):
        config(**needed, no_such_option=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        config(**needed).name = "other"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", variants(LossConfig))
def test_losses_give_one_finite_loss_per_row_and_readable_outputs(name: str) -> None:
    built = 0
    for labels, bounds in product(KINDS, (None, (-1.0, 1.0), (0.0, 1.0))):
        try:
            loss = variants(LossConfig)[name]().build(labels, "task", bounds)  # type: ignore[attr-defined]
        except UserError as error:
            assert str(error).startswith("tasks.task.loss: ")
            continue
        built += 1
        low, high = bounds or (-3.0, 3.0)
        output = (low + (high - low) * torch.rand(5, loss.outputs)).requires_grad_()
        if labels.kind == "multilabel":
            target = torch.randint(2, (5, len(labels.names))).double()
        else:
            target = torch.rand(5) if labels.is_numeric else torch.randint(len(labels.names), (5,))
        losses = loss(output, target)
        assert losses.shape == (5,)
        assert torch.isfinite(losses).all()
        losses.sum().backward()
        assert output.grad is not None
        assert output.grad.abs().sum() > 0
        reading = loss.read(output.detach())
        if labels.is_numeric:
            assert reading.shape == (5,)
        else:
            assert reading.shape == (5, len(labels.names))
            assert ((reading >= 0) & (reading <= 1)).all()
            if labels.kind != "multilabel":
                torch.testing.assert_close(reading.sum(1), torch.ones(5))
    assert built


@pytest.mark.parametrize("name", variants(PoolingConfig))
def test_poolings_see_only_their_own_sequence(name: str) -> None:
    body = Body(BODY)
    pooling = variants(PoolingConfig)[name]().build(body)
    encoded = Encoded(torch.zeros(9, dtype=torch.long), torch.zeros(9, dtype=torch.long), (4, 2, 3))
    torch.manual_seed(0)
    hidden = torch.randn(9, 6, requires_grad=True)
    vectors = pooling(hidden, encoded)
    assert vectors.shape == (3, pooling.width)
    vectors[1].sum().backward()
    touched = hidden.grad.abs().sum(1) > 0  # type: ignore[union-attr]
    assert touched[4:6].any()
    assert not touched[:4].any()
    assert not touched[6:].any()
    assert pooling.first_only == (touched[4:6].tolist() == [True, False])


@pytest.mark.parametrize("name", variants(HeadConfig))
@pytest.mark.parametrize("pair", [True, False])
def test_heads_give_their_width_or_say_why_not(name: str, pair: bool) -> None:
    for outputs in (1, 4):
        try:
            head = variants(HeadConfig)[name]().build(HeadShape(6, pair=pair, outputs=outputs, task="task"))
        except UserError as error:
            assert str(error).startswith("tasks.task.head: ")
            continue
        torch.manual_seed(0)
        first = torch.randn(5, 6, requires_grad=True)
        second = torch.randn(5, 6, requires_grad=True) if pair else None
        output = head(first, second)
        assert output.shape == (5, head.outputs) == (5, outputs)
        output.square().sum().backward()
        for side in (first, second):
            assert side is None or side.grad.abs().sum() > 0  # type: ignore[union-attr]


@pytest.mark.parametrize("name", variants(HeadConfig))
def test_heads_follow_from_their_seed_and_survive_saving(name: str) -> None:
    built = []
    for _ in range(2):
        with seeded(4, "head"):
            built.append(variants(HeadConfig)[name]().build(HeadShape(6, pair=True, outputs=1, task="task")))  # type: ignore[attr-defined]
    torch.manual_seed(0)
    first, second = torch.randn(3, 6), torch.randn(3, 6)
    assert torch.equal(built[0](first, second), built[1](first, second))
    for parameter in built[1].parameters():
        torch.nn.init.normal_(parameter)
    built[1].load_state_dict(built[0].state_dict())
    assert torch.equal(built[0](first, second), built[1](first, second))


@pytest.mark.parametrize("name", variants(WeightingConfig))
def test_weightings_are_affine_in_the_losses(name: str) -> None:
    options = {"weights": {"a": 1.0, "b": 0.5, "c": 2.0}} if name == "fixed" else {}
    weighting = variants(WeightingConfig)[name](**options).build(("a", "b", "c"))  # type: ignore[attr-defined]
    for _ in range(250):  # far enough for a method that looks back
        weighting.observe(torch.rand(3), ("a", "b", "c"))
    tasks = ("c", "a")
    slopes = weighting.slopes(tasks, torch.zeros(()))
    low, high = torch.tensor([0.3, 2.0]), torch.tensor([1.1, 0.5])
    difference = weighting(high, tasks) - weighting(low, tasks)
    torch.testing.assert_close(difference, slopes * (high - low))
