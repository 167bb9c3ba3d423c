"""The contract of an adapter."""

import torch
from torch import Tensor, nn

from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters.base import Adapter, AdapterOptions
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.foundation.randomness import seeded
from weft.foundation.values import Encoded
from weft.testing.configs import check_config, require, require_close

SHAPE = BodyShape(
    vocabulary=20, width=16, layers=2, heads=2, inner=24, positions=12, dropout=0.0, attention_dropout=0.0
)
LENGTHS = (5, 3, 5, 1, 4)


def check_adapter(config: AdapterOptions) -> None:
    """Check that an adapter starts without effect, trains, saves its state, and changes the tokens of its task alone.

    If it says that it can be merged into the body's weights, the merged body must compute the same.
    """
    check_config(config)
    with seeded(4, "body"):
        body = Body(SHAPE).double()
    encoded = _encoded()
    plain = _states(body, encoded, [(None, len(encoded.ids))])
    first, again, second = (_drawn(config, body, purpose) for purpose in ("first", "first", "second"))
    where = type(config).__name__
    require(len(first.layers) == len(body.layers), f"{where}: has another number of layers than the body")
    start = _states(body, encoded, [(first, len(encoded.ids))])
    require_close(start, plain, f"{where}: a new adapter changes the output of the body", rtol=1e-12, atol=1e-12)
    for name, tensor in first.state_dict().items():
        require(torch.equal(tensor, again.state_dict()[name]), f"{where}: equal seeds build different adapters")
    for adapter, seed in ((first, 1), (second, 2)):
        _fill(adapter, seed)
    changed = _states(body, encoded, [(first, len(encoded.ids))])
    require(not torch.allclose(changed, plain), f"{where}: has no effect on the output of the body")
    _check_gradients(first, changed, where)
    _check_spans(body, encoded, first, second, where)
    again.load_state_dict(first.state_dict())
    saved = _states(body, encoded, [(again, len(encoded.ids))])
    require_close(saved, changed, f"{where}: differs after the state was saved and loaded", rtol=0.0, atol=0.0)
    if first.can_merge:
        first.merge(list(body.layers))
        merged = _states(body, encoded, [(None, len(encoded.ids))])
        require_close(merged, changed, f"{where}: differs after it was merged", rtol=1e-10, atol=1e-10)


def _check_gradients(adapter: Adapter, states: Tensor, where: str) -> None:
    states.square().sum().backward()
    for name, parameter in adapter.named_parameters():
        moved = parameter.grad is not None and parameter.grad.abs().sum() > 0
        require(moved, f"{where}: the gradient of {name} is missing or zero")


def _check_spans(body: Body, encoded: Encoded, first: Adapter, second: Adapter, where: str) -> None:
    """One pass for tokens with different adapters, or with none, must equal one pass for each."""
    sizes = [LENGTHS[0] + LENGTHS[1], LENGTHS[2] + LENGTHS[3], LENGTHS[4]]
    adapters = [first, None, second]
    together = _states(body, encoded, list(zip(adapters, sizes, strict=True)))
    pieces = zip(adapters, together.split(sizes), encoded.ids.split(sizes), _by_span(sizes), strict=True)
    for adapter, found, ids, lengths in pieces:
        own = Encoded(ids, torch.zeros_like(ids), lengths)
        expected = _states(body, own, [(adapter, len(ids))])
        require_close(found, expected, f"{where}: depends on tokens of other tasks", rtol=1e-10, atol=1e-10)


def _by_span(sizes: list[int]) -> list[tuple[int, ...]]:
    """Split LENGTHS into runs with these sums."""
    rest, runs = list(LENGTHS), []
    for size in sizes:
        run: list[int] = []
        while sum(run) < size:
            run.append(rest.pop(0))
        runs.append(tuple(run))
    return runs


def _encoded() -> Encoded:
    ids = torch.randint(SHAPE.vocabulary, (sum(LENGTHS),), generator=torch.Generator().manual_seed(0))
    return Encoded(ids, torch.zeros_like(ids), LENGTHS)


def _drawn(config: AdapterOptions, body: Body, purpose: str) -> Adapter:
    with seeded(4, purpose):
        adapter = config.build(body.shape, list(body.layers))
    require(isinstance(adapter, Adapter), f"{type(config).__name__}: builds a {type(adapter).__name__}, not an Adapter")
    return adapter.double().eval()


def _fill(adapter: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in adapter.parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)


def _states(body: Body, encoded: Encoded, spans: list[tuple[Adapter | None, int]]) -> Tensor:
    """Return the last hidden states [t, w] in evaluation mode."""
    states: Tensor = body.eval()(encoded, None, AdaptedPass(spans))[-1]
    return states
