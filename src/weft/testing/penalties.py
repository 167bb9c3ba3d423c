"""The contract of a penalty."""

import torch
from torch import Tensor, nn

from weft.penalties.base import OutputPenalty, Penalty, PenaltyOptions, WeightPenalty
from weft.testing.configs import check_config, require, require_close


def check_penalty(config: PenaltyOptions) -> None:
    """Check that a penalty is finite, has a gradient after a step, and keeps its state in parameters and buffers."""
    check_config(config)
    network = _network(0)
    penalty = config.build()
    where = type(penalty).__name__
    penalty.prepare(network)
    _move(network)
    penalty.after_step(network)
    value = _value(penalty, network, where)
    require(torch.isfinite(value).all(), f"{where}: is not finite: {value.tolist()}")
    gradients = torch.autograd.grad(value.sum(), list(network.parameters()), allow_unused=True)
    moved = any(gradient is not None and bool(gradient.any()) for gradient in gradients)
    require(moved, f"{where}: the gradient of the weights is missing or zero")
    other = config.build()
    other.prepare(_network(5))
    other.load_state_dict(penalty.state_dict())
    saved = _value(other, network, where)
    require_close(saved, value, f"{where}: differs after the state was saved and loaded")


def _value(penalty: Penalty, network: nn.Module, where: str) -> Tensor:
    if isinstance(penalty, WeightPenalty):
        value: Tensor = penalty(list(network.named_parameters()))
        require(value.ndim == 0, f"{where}: returns shape {list(value.shape)}, expected a scalar")
        return value
    require(isinstance(penalty, OutputPenalty), f"{where}: is neither a WeightPenalty nor an OutputPenalty")
    assert isinstance(penalty, OutputPenalty)
    earlier = penalty.earlier(network)
    require(
        type(earlier) is type(network),
        f"{where}: `earlier` returns a {type(earlier).__name__}, expected a {type(network).__name__}",
    )
    texts = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        before = earlier(texts)
    term: Tensor = penalty(network(texts), before, lambda one, two: (one - two).square().sum(dim=1))
    require(term.shape == (4,), f"{where}: returns shape {list(term.shape)}, expected one term per row")
    return term


def _network(seed: int) -> nn.Module:
    network = nn.Linear(3, 2)
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        nn.init.normal_(parameter, generator=generator)
    return network


@torch.no_grad()
def _move(network: nn.Module) -> None:
    for parameter in network.parameters():
        parameter.add_(0.1)
