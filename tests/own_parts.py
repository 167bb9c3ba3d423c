"""A component of one's own for every room. Tests copy this file beside a recipe, where weft finds it by `use`."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from weft.bodies.adapters.base import Adapter, AdapterOptions, LayerAdapter
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.foundation.values import Encoded
from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds, Head, HeadOptions, HeadShape, joined, plain_linear
from weft.nn.pooling.base import Pooling, PoolingOptions
from weft.penalties.base import Named, PenaltyOptions, WeightPenalty
from weft.regularizers.base import Divergence, Regularizer, RegularizerOptions, Run
from weft.schedules.base import Feed, Round, ScheduleOptions, Segment
from weft.schedules.streams import BatchStream
from weft.surgery.base import Surgery, SurgeryOptions
from weft.weighting.base import Weighting, WeightingOptions

__version__ = "1.5"


class Focal(Loss):
    """`(1 - p_y)^gamma -log p_y`"""

    activation = "softmax"

    def __init__(self, outputs: int, gamma: float) -> None:
        super().__init__(outputs)
        self.gamma = gamma

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        losses = F.cross_entropy(output, target, reduction="none")
        return (1 - (-losses).exp()) ** self.gamma * losses

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


class FocalConfig(LossOptions):
    name: Literal["focal"] = "focal"
    gamma: float = Field(default=2.0, ge=0)

    def build(self, labels: Labels, task: str, bounds: Bounds) -> Focal:  # noqa: ARG002
        if not labels.kind.has_one_class:
            raise refuse(self.name, labels, task, "one class out of several")
        return Focal(len(labels.names), self.gamma)


class Gated(Head):
    """`W (g * u) + b` with a learnt gate g."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape.outputs)
        width = shape.width * (2 if shape.pair else 1)
        self.gate = nn.Parameter(torch.ones(width))
        self.dense = plain_linear(width, shape.outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        output: Tensor = self.dense(self.gate * joined(first, second))
        return output


class GatedConfig(HeadOptions):
    name: Literal["gated"] = "gated"

    def build(self, shape: HeadShape) -> Gated:
        return Gated(shape)


class Sum(Pooling):
    """`sum_t h_t`"""

    def forward(self, hidden: Tensor, encoded: Encoded) -> Tensor:
        return hidden.new_zeros(len(encoded.lengths), hidden.shape[1]).index_add(0, encoded.owners, hidden)

    def padded(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return (hidden * mask[:, :, None].to(hidden.dtype)).sum(dim=1)


class SumConfig(PoolingOptions):
    name: Literal["sum-of-states"] = "sum-of-states"

    def build(self, body: Body) -> Sum:
        return Sum(body.shape.width)


class RotatingConfig(ScheduleOptions):
    """One task at a time, in turn."""

    name: Literal["rotating"] = "rotating"

    def segments(self, feed: Feed) -> list[Segment]:
        streams = feed.streams(self.drop_last)
        rounds = len(streams) * max(stream.per_pass for stream in streams)
        return [Segment(rounds, partial(_turn, streams, epoch * rounds), True) for epoch in range(feed.epochs)]


def _turn(streams: list[BatchStream], start: int, i: int) -> Round:
    turn, place = divmod(start + i, len(streams))
    return [(streams[place].source, streams[place].batch(turn))]


class Learned(Weighting):
    """`softplus(w_i) l_i`"""

    heeds_scale = True

    def __init__(self, tasks: tuple[str, ...], start: float) -> None:
        super().__init__()
        self.w = nn.ParameterDict({task: nn.Parameter(torch.tensor(start)) for task in tasks})

    def forward(self, losses: Tensor, tasks: tuple[str, ...]) -> Tensor:
        return losses * F.softplus(torch.stack([self.w[task] for task in tasks])).to(losses.dtype)


class LearnedConfig(WeightingOptions):
    name: Literal["learned"] = "learned"
    start: float = 0.5

    def build(self, tasks: tuple[str, ...]) -> Learned:
        return Learned(tasks, self.start)


class NormalizedGradientsConfig(SurgeryOptions):
    """`sum_i g_i / |g_i|`"""

    name: Literal["normalized-gradients"] = "normalized-gradients"

    def build(self) -> Surgery:
        return Surgery(lambda gramian: gramian.diagonal().clamp(min=1e-12).rsqrt())


class Consistency(Regularizer):
    """The divergence under another mask, with a learnt temperature: state that answers do not need."""

    def __init__(self, weight: float) -> None:
        super().__init__(weight)
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, run: Run, embedded: Tensor, output: Tensor, divergence: Divergence) -> Tensor:
        return self.weight * self.temperature * divergence(run(embedded, 1), output)


class ConsistencyConfig(RegularizerOptions):
    name: Literal["consistency"] = "consistency"
    weight: float = Field(default=0.3, gt=0)

    def build(self) -> Consistency:
        return Consistency(self.weight)


class Anchor(WeightPenalty):
    """`lambda |theta - theta_0|^2`"""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def prepare(self, network: nn.Module) -> None:
        for name, parameter in network.named_parameters():
            self.register_buffer(_key(name), parameter.detach().clone())

    def forward(self, parameters: Named) -> Tensor:
        moved = [(p - self.get_buffer(_key(name))).square().sum() for name, p in parameters]
        return self.weight * torch.stack(moved).sum()


def _key(parameter: str) -> str:
    """A buffer's name has no dots."""
    return "start/" + parameter.replace(".", "/")


class AnchorConfig(PenaltyOptions):
    name: Literal["anchor"] = "anchor"
    weight: float = Field(default=1e-3, gt=0)

    def build(self) -> Anchor:
        return Anchor(self.weight)


class GainLayer(LayerAdapter):
    """`(1 + g) * (W x + b)` for the first linear layer of the feed-forward block, as in (IA)^3."""

    sites = frozenset({"inner"})

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(width))

    def linear(self, module: str, inputs: Tensor, outputs: Tensor) -> Tensor:  # noqa: ARG002
        return outputs * (1 + self.gain)


class GainConfig(AdapterOptions):
    name: Literal["gain"] = "gain"

    def build(self, shape: BodyShape, layers: Sequence[nn.Module]) -> Adapter:
        return Adapter([GainLayer(shape.inner) for _ in layers])
