"""What holds for every variant of every registry, the day it is listed."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.contracts.registry import variants
from weft import testing
from weft.bodies.adapters import AdapterConfig
from weft.data.long_texts import LongTextsConfig
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.pooling import PoolingConfig
from weft.penalties import PenaltyConfig
from weft.regularizers import RegularizerConfig
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.testing.configs import check_config
from weft.trackers import TrackerConfig
from weft.training.averaging import AverageConfig
from weft.training.trainable import TrainableConfig
from weft.weighting import WeightingConfig

SOURCE = Path(weft.__file__).parent
REGISTRIES = {
    "bodies/adapters": AdapterConfig,
    "data/long_texts": LongTextsConfig,
    "losses": LossConfig,
    "penalties": PenaltyConfig,
    "regularizers": RegularizerConfig,
    "nn/heads": HeadConfig,
    "nn/pooling": PoolingConfig,
    "schedules": ScheduleConfig,
    "surgery": SurgeryConfig,
    "trackers": TrackerConfig,
    "weighting": WeightingConfig,
    "training/averaging.py": AverageConfig,
    "training/trainable.py": TrainableConfig,
}
CHECKS: dict[str, Callable[[Any], None]] = {
    "bodies/adapters": testing.check_adapter,
    "losses": testing.check_loss,
    "penalties": testing.check_penalty,
    "regularizers": testing.check_regularizer,
    "nn/heads": testing.check_head,
    "nn/pooling": testing.check_pooling,
    "schedules": testing.check_schedule,
    "surgery": testing.check_surgery,
    "weighting": testing.check_weighting,
}
NEEDED: dict[str, Any] = {"layers": {"layers": (0,)}, "fixed": {"weights": {"a": 1.0, "b": 0.5, "c": 2.0}}}
"""options that have no default"""


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
def test_a_variant_keeps_the_contract_of_its_room(room: str, name: str) -> None:
    """The same checks that users call for components of their own."""
    config = variants(REGISTRIES[room])[name].model_validate(NEEDED.get(name, {}))
    CHECKS.get(room, check_config)(config)
