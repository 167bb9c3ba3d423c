"""Every variant that takes part in a step: two processes train what one trains, in float64 without dropout."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.contracts.registry import of_rows, variants
from tests.integration.test_distributed import SMART, assert_equal_runs, exact, records
from tests.integration.test_variants import SINGLE_NUMBER
from tests.integration.together import train_all, train_together
from weft.bodies.adapters import AdapterConfig
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.pooling import PoolingConfig
from weft.penalties import PenaltyConfig
from weft.regularizers import RegularizerConfig
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.training.distributed import SOLO
from weft.training.trainable import TrainableConfig
from weft.weighting import WeightingConfig

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("few_resamples")]
OPTIONS: dict[str, Any] = {
    "fixed": {"name": "fixed", "weights": {"sentiment": 0.1, "paraphrase": 1.0, "similarity": 0.2}},
    "dwa": {"name": "dwa", "every": 1},
    "layers": {"name": "layers", "layers": [1]},
    "smart": SMART,
    "staggered": {"name": "staggered", "first": "paraphrase", "first_epochs": 1},
}
NAMES = {
    "schedule": variants(ScheduleConfig),
    "weighting": variants(WeightingConfig),
    "surgery": variants(SurgeryConfig),
    "trainable": variants(TrainableConfig),
    "adapter": variants(AdapterConfig),
    "penalties": variants(PenaltyConfig),
    "regularizer": variants(RegularizerConfig),
    "pooling": of_rows(PoolingConfig),
    "head": variants(HeadConfig),
    "loss": [name for name in of_rows(LossConfig) if name != "in-batch-negatives"],  # in test_distributed.py
}
FURTHER: dict[str, dict[str, Any]] = {
    "phases": {"epochs": 2, "phases": [{"epochs": 1, "trainable": "frozen"}, {"epochs": 1}], "surgery": "pcgrad"},
    "recomputed": {"optimizer": {"precision": "fp64", "gradient_checkpointing": True, "accumulate": 2, "lr": 1e-3}},
    "shared-adapter": {"adapter": {"name": "lora", "matrices": "all"}, "surgery": "pcgrad"},
    "own-adapters": {"adapter": {"name": "lora", "per_task": True}, "surgery": "pcgrad", "trainable": "full"},
    "bf16": {"optimizer": {"precision": "bf16", "lr": 1e-3}},
}
CASES = [f"{point}-{name}" for point, names in NAMES.items() for name in names]


def content_of(tiny: Path, case: str) -> dict[str, Any]:
    point, _, name = case.partition("-")
    value = OPTIONS.get(name, name)
    if point in ("schedule", "weighting", "surgery", "trainable", "adapter"):
        return exact(tiny, **{point: value}) | ({"epochs": 2} if point == "schedule" else {})
    if point == "penalties":  # eps: see the cases in tests/integration/test_distributed.py
        return exact(tiny, penalties=[name], optimizer={"eps": 1e-4})
    content = exact(tiny)
    sentiment, paraphrase, similarity = content["tasks"].values()
    if point == "regularizer":
        sentiment["regularizer"] = similarity["regularizer"] = value
    elif point == "pooling":
        sentiment["pooling"] = similarity["pooling"] = value
    elif name in ("vectors", "angle", "cosent"):  # these losses see the rows of one process unless they gather
        head, loss = ("cosine", "cosent") if name == "cosent" else ("vectors", "angle")
        similarity |= {"head": head, "loss": {"name": loss, "gather": True}}
    elif point == "head":
        similarity |= {"head": name} | ({"scale": False, "range": [0, 5]} if name == "relu-cosine" else {})
        if name not in SINGLE_NUMBER:
            paraphrase |= {"reading": "bi", "head": name}
    elif name == "cosine-embedding":
        similarity |= {"head": "cosine", "loss": {"name": name, "cut": 2.5}}
    else:
        (similarity if name == "mse" else sentiment)["loss"] = name
    return content


@pytest.fixture(scope="module")
def both(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """All cases, trained by one process and by two."""
    recipes = {case: content_of(tiny, case) for case in CASES}
    recipes |= {case: exact(tiny) | changes for case, changes in FURTHER.items()}
    recipes["factors"] = exact(tiny)
    recipes["factors"]["tasks"]["paraphrase"]["layer_factors"] = {"layers": [1], "beta": 2.0, "alpha": 0.5}
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    train_together(two, recipes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randn_like", torch.ones_like)
        train_all(one, recipes, SOLO)
    return one, two


@pytest.mark.parametrize("case", [*CASES, "phases", "recomputed", "factors", "shared-adapter", "own-adapters"])
def test_two_processes_equal_one(case: str, both: tuple[Path, Path]) -> None:
    one, two = both
    assert_equal_runs(one / case, two / case)


def test_bf16_rounds_but_trains_alike(both: tuple[Path, Path]) -> None:
    one, two = ([record["losses"] for record in records(run / "bf16") if record["event"] == "step"] for run in both)
    for ours, theirs in zip(one, two, strict=True):
        assert ours == pytest.approx(theirs, rel=0.02)
