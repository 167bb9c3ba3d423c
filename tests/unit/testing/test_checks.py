"""The checks accept components that keep their contract, and say what another one breaks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
import torch
from pydantic import ConfigDict
from torch import Tensor, nn

from tests import own_parts as own
from weft import testing
from weft.bodies.adapters.base import Adapter
from weft.bodies.shape import BodyShape
from weft.foundation.values import Encoded
from weft.kinds.labels import Labels
from weft.losses.base import LossOptions
from weft.nn.heads.base import Bounds, HeadShape, plain_linear
from weft.penalties.base import Named
from weft.regularizers.base import Divergence, Run
from weft.schedules.base import Feed, Round, Segment
from weft.surgery.base import Surgery

CHECKS: list[tuple[Callable[[Any], None], Any]] = [
    (testing.check_loss, own.FocalConfig(gamma=1.5)),
    (testing.check_head, own.GatedConfig()),
    (testing.check_pooling, own.SumConfig()),
    (testing.check_schedule, own.RotatingConfig()),
    (testing.check_weighting, own.LearnedConfig()),
    (testing.check_surgery, own.NormalizedGradientsConfig()),
    (testing.check_regularizer, own.ConsistencyConfig()),
    (testing.check_penalty, own.AnchorConfig()),
    (testing.check_adapter, own.GainConfig()),
]


@pytest.mark.parametrize(("check", "config"), CHECKS)
def test_components_that_keep_the_contract(check: Callable[[Any], None], config: Any) -> None:
    check(config)


class MeanLoss(own.Focal):
    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return super().forward(output, target).mean()


class MeanLossConfig(own.FocalConfig):
    def build(self, labels: Labels, task: str, bounds: Bounds) -> own.Focal:
        super().build(labels, task, bounds)
        return MeanLoss(len(labels.names), self.gamma)


class Unread(own.Focal):
    def read(self, output: Tensor) -> Tensor:
        return output.sigmoid() / output.sigmoid().sum(dim=1, keepdim=True)


class UnreadConfig(own.FocalConfig):
    def build(self, labels: Labels, task: str, bounds: Bounds) -> own.Focal:
        super().build(labels, task, bounds)
        return Unread(len(labels.names), self.gamma)


class OpenConfig(own.FocalConfig):
    model_config = ConfigDict(extra="allow")


class PickyConfig(LossOptions):
    name: Literal["picky"] = "picky"

    def build(self, labels: Labels, task: str, bounds: Bounds) -> own.Focal:  # noqa: ARG002
        raise own.refuse(self.name, labels, task, "nobody")


class OneSided(own.Gated):
    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape)
        self.dense = plain_linear(shape.width, shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:  # noqa: ARG002
        output: Tensor = self.dense(first)
        return output


class OneSidedConfig(own.GatedConfig):
    def build(self, shape: HeadShape) -> own.Gated:
        return OneSided(shape)


class Neighbours(own.Sum):
    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        return super().forward(hidden, encoded) + hidden.mean(dim=0)


class NeighboursConfig(own.SumConfig):
    def build(self, body: Any) -> own.Sum:
        return Neighbours(body.shape.width)


class Padding(own.Sum):
    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return hidden.sum(dim=1) / mask.sum(dim=1, keepdim=True)


class PaddingConfig(own.SumConfig):
    def build(self, body: Any) -> own.Sum:
        return Padding(body.shape.width)


class RememberingConfig(own.RotatingConfig):
    """Its rounds depend on how often they were asked for."""

    def segments(self, feed: Feed) -> list[Segment]:
        asked = [0]

        def round_of(i: int) -> Round:
            asked[0] += 1
            task = next(iter(feed.sizes))
            return [(task, feed.stream(task, drop_last=False).batch(i + asked[0]))]

        return [Segment(4, round_of, ends_epoch=True) for _ in range(feed.epochs)]


class Quadratic(own.Learned):
    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        return super().forward(losses, tasks) * losses


class QuadraticConfig(own.LearnedConfig):
    def build(self, tasks: tuple[str, ...]) -> own.Learned:
        return Quadratic(tasks, self.start)


class FirstAloneConfig(own.NormalizedGradientsConfig):
    def build(self) -> Surgery:
        return Surgery(lambda gramian: torch.eye(len(gramian), dtype=gramian.dtype)[0])


class WholeBatch(own.Consistency):
    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: Divergence) -> Tensor:
        return super().forward(run, embedded, output, divergence).sum()


class WholeBatchConfig(own.ConsistencyConfig):
    def build(self) -> own.Consistency:
        return WholeBatch(self.weight)


class Forgetful(own.Anchor):
    """Its start is a plain attribute, which no checkpoint saves."""

    def prepare(self, network: torch.nn.Module) -> None:
        self.start = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}

    def forward(self, parameters: Named) -> Tensor:
        return self.weight * torch.stack([(p - self.start[name]).square().sum() for name, p in parameters]).sum()


class ForgetfulConfig(own.AnchorConfig):
    def build(self) -> own.Anchor:
        return Forgetful(self.weight)


class SuddenConfig(own.GainConfig):
    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        adapter = super().build(shape, layers)
        for parameter in adapter.parameters():
            nn.init.ones_(parameter)
        return adapter


class Boastful(Adapter):
    can_merge = True

    def merge(self, layers: Sequence[nn.Module]) -> None:
        """Leave the body as it is."""


class BoastfulConfig(own.GainConfig):
    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        return Boastful([own.GainLayer(shape.inner) for _ in layers])


@pytest.mark.parametrize(
    ("check", "config", "message"),
    [
        (testing.check_loss, MeanLossConfig(), "expected one per row"),
        (testing.check_loss, UnreadConfig(), "`read` is not softmax"),
        (testing.check_loss, OpenConfig(), "accepts unknown keys"),
        (testing.check_loss, PickyConfig(), "rejects every kind of labels"),
        (testing.check_head, OneSidedConfig(), "the gradient of vector 2 is missing or zero"),
        (testing.check_pooling, NeighboursConfig(), "reads the tokens of other sequences"),
        (testing.check_pooling, PaddingConfig(), "`padded` and `forward` return different vectors"),
        (testing.check_schedule, RememberingConfig(), "must depend only on its number"),
        (testing.check_weighting, QuadraticConfig(), "not affine"),
        (testing.check_surgery, FirstAloneConfig(), "depends on the order of tasks"),
        (testing.check_regularizer, WholeBatchConfig(), "expected one term per row"),
        (testing.check_penalty, ForgetfulConfig(), "differs after the state was saved and loaded"),
        (testing.check_adapter, SuddenConfig(), "a new adapter changes the output of the body"),
        (testing.check_adapter, BoastfulConfig(), "differs after it was merged"),
    ],
)
def test_components_that_break_it(check: Callable[[Any], None], config: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(config)
