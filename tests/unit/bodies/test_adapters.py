"""Adapters on bodies: formulas of bottlenecks and PALs, and one pass for tokens of many adapters."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor, nn

from tests.contracts.registry import variants
from tests.families import SMALL, random_body
from tests.parity.harness import pad, random_sequences, unpad
from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters import AdapterConfig
from weft.bodies.adapters.base import Adapter, AdapterOptions
from weft.bodies.adapters.bottleneck import BottleneckConfig
from weft.bodies.adapters.lora import LoraConfig
from weft.bodies.adapters.pal import PalConfig
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.bodies.weights import load_body
from weft.foundation.errors import UserError
from weft.foundation.values import Encoded

OPTIONS: dict[str, dict[str, Any]] = {"lora": {"matrices": "all", "rank": 2}, "bottleneck": {"size": 3}, "pal": {}}
SHAPE = BodyShape(
    vocabulary=50, width=24, layers=2, heads=2, inner=40, positions=40, dropout=0.0, attention_dropout=0.0
)


def random_adapter(config: AdapterOptions, body: Body, seed: int) -> Adapter:
    adapter = config.build(body.shape, list(body.layers)).to(body.embeddings.tokens.weight.dtype)
    generator = torch.Generator().manual_seed(seed)
    for parameter in adapter.parameters():
        nn.init.normal_(parameter, std=0.2, generator=generator)
    return adapter


def plain_body() -> Body:
    torch.manual_seed(0)
    body = Body(SHAPE).double().eval()
    for parameter in body.parameters():
        nn.init.normal_(parameter, std=0.2)
    return body


def attend(qkv: Tensor, heads: int) -> Tensor:
    """Attention of one sequence [l, 3w], from the formula."""
    q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in qkv.chunk(3, dim=1))
    shares = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return (shares @ v).transpose(0, 1).flatten(1)


def one_layer(layer: Any, x: Tensor, *, after: dict[str, Any] | None = None, beside: Tensor | None = None) -> Tensor:
    """BERT's layer for one sequence, in plain torch; `after` are functions on the outputs of its blocks."""
    functions = {"attention": nn.Identity(), "feed-forward": nn.Identity()} | (after or {})
    attended = layer.attention_out(attend(layer.qkv(x), SHAPE.heads))
    x = layer.attention_norm(x + functions["attention"](attended))
    raised = functions["feed-forward"](layer.outer(F.gelu(layer.inner(x))))
    result: Tensor = layer.outer_norm(x + raised + (0.0 if beside is None else beside))
    return result


@pytest.mark.parametrize(("placement", "activation"), [("houlsby", "relu"), ("pfeiffer", "gelu")])
def test_bottlenecks_from_their_formula(placement: Any, activation: Any) -> None:
    body = plain_body()
    adapter = random_adapter(BottleneckConfig(placement=placement, reduction=8, activation=activation), body, 1)
    encoded = random_sequences(50, [7])
    x = body.embed(encoded)
    f = {"relu": F.relu, "gelu": F.gelu}[activation]
    for layer, own in zip(body.layers, adapter.layers, strict=True):
        state = own.state_dict()
        assert state["feed-forward.down.weight"].shape == (3, 24)
        assert ("attention.down.weight" in state) == (placement == "houlsby")

        def bottleneck(y: Tensor, name: str, state: dict[str, Tensor] = state) -> Tensor:
            low = f(y @ state[f"{name}.down.weight"].T + state[f"{name}.down.bias"])
            return y + low @ state[f"{name}.up.weight"].T + state[f"{name}.up.bias"]

        after = {"feed-forward": lambda y, g=bottleneck: g(y, "feed-forward")}
        if placement == "houlsby":
            after["attention"] = lambda y, g=bottleneck: g(y, "attention")
        x = one_layer(layer, x, after=after)
    torch.testing.assert_close(body(encoded, None, AdaptedPass([(adapter, 7)]))[-1], x, rtol=1e-10, atol=1e-10)


def test_projected_attention_from_its_formula() -> None:
    body = plain_body()
    adapter = random_adapter(PalConfig(size=8), body, 1)
    state = adapter.state_dict()
    encoded = random_sequences(50, [7])
    x = body.embed(encoded)
    for k, layer in enumerate(body.layers):
        assert torch.equal(state[f"layers.{k}.encode.weight"], state["encode.weight"])  # shared by all layers
        low = x @ state["encode.weight"].T + state["encode.bias"]
        context = attend(low @ state[f"layers.{k}.qkv.weight"].T + state[f"layers.{k}.qkv.bias"], SHAPE.heads)
        x = one_layer(layer, x, beside=F.gelu(context @ state["decode.weight"].T + state["decode.bias"]))
    torch.testing.assert_close(body(encoded, None, AdaptedPass([(adapter, 7)]))[-1], x, rtol=1e-10, atol=1e-10)
    shared = 2 * 24 * 8 + 8 + 24
    assert sum(p.numel() for p in adapter.parameters()) == shared + 2 * (8 * 24 + 24)


@pytest.mark.parametrize("model_type", SMALL)
@pytest.mark.parametrize("name", variants(AdapterConfig))
def test_one_pass_for_three_adapters_equals_three_passes(model_type: str, name: str, tmp_path: Path) -> None:
    """For every family; with sequences of equal length in several tasks, and the last layer for first tokens alone."""
    random_body(tmp_path, model_type, 50, SMALL[model_type], norm=1.0)
    config = variants(AdapterConfig)[name](**OPTIONS[name])
    assert isinstance(config, AdapterOptions)
    lengths = [[5, 12, 1], [12, 5, 20], [7], [5, 12]]
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-10)):
        body = load_body(tmp_path).to(dtype).eval()
        adapters: list[Adapter | None] = [random_adapter(config, body, seed).eval() for seed in (1, 2)]
        adapters = [adapters[0], adapters[1], None, random_adapter(config, body, 3).eval()]
        whole = random_sequences(50, [length for own in lengths for length in own])
        sizes = [sum(own) for own in lengths]
        spans = list(zip(adapters, sizes, strict=True))
        read = torch.cat([whole.starts[:3], torch.arange(sizes[0], sizes[0] + sizes[1]), whole.starts[6:]])
        with torch.no_grad():
            together = body(whole, None, AdaptedPass(spans))[-1].split(sizes)
            selected = body(whole, read, AdaptedPass(spans))[-1]
            for adapter, own, found, ids, types in zip(
                adapters, lengths, together, whole.ids.split(sizes), whole.segments.split(sizes), strict=True
            ):
                alone = body(Encoded(ids, types, tuple(own)), None, AdaptedPass([(adapter, len(ids))]))[-1]
                assert (found - alone).abs().max() < tolerance * max(1.0, float(alone.abs().max()))
        assert (selected[read] - torch.cat(together)[read]).abs().max() < tolerance * 10


@pytest.mark.parametrize("model_type", SMALL)
@pytest.mark.parametrize("name", variants(AdapterConfig))
def test_padded_states_equal_packed_ones(model_type: str, name: str, tmp_path: Path) -> None:
    random_body(tmp_path, model_type, 50, SMALL[model_type], norm=1.0)
    body = load_body(tmp_path).double().eval()
    config = variants(AdapterConfig)[name](**OPTIONS[name])
    assert isinstance(config, AdapterOptions)
    adapter = random_adapter(config, body, 1).eval()
    encoded = random_sequences(50, [5, 12, 1, 12])
    with torch.no_grad():
        packed = body(encoded, None, AdaptedPass([(adapter, len(encoded.ids))]))[-1]
        padded = body.padded(*pad(encoded, body.shape.pad), AdaptedPass([(adapter, 1)]))[-1]
    assert (unpad(padded, encoded) - packed).abs().max() < 1e-6


@pytest.mark.parametrize("name", variants(AdapterConfig))
def test_recomputed_layers_have_the_same_gradients(name: str) -> None:
    body = plain_body().requires_grad_(False)
    config = variants(AdapterConfig)[name](**OPTIONS[name])
    assert isinstance(config, AdapterOptions)
    encoded, found = random_sequences(50, [5, 3]), []
    for recompute in (False, True):
        body.recompute = recompute
        adapters = [random_adapter(config, body, seed) for seed in (1, 2)]
        body(encoded, None, AdaptedPass([(adapters[0], 5), (adapters[1], 3)]))[-1].square().sum().backward()
        found.append([p.grad for adapter in adapters for p in adapter.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_dropout_of_lora_is_for_training() -> None:
    body = plain_body()
    adapter = random_adapter(LoraConfig(dropout=0.5), body, 1)
    encoded = random_sequences(50, [30])
    spans = AdaptedPass([(adapter, 30)])
    assert torch.equal(body(encoded, None, spans)[-1], body(encoded, None, spans)[-1]) is False
    adapter.eval()
    assert torch.equal(body(encoded, None, spans)[-1], body(encoded, None, spans)[-1])


def test_sizes_that_do_not_fit_are_rejected() -> None:
    with pytest.raises(UserError, match="adapter.size: found 9, expected a multiple of the body's 2 heads"):
        PalConfig(size=9).build(SHAPE, list(plain_body().layers))
    with pytest.raises(UserError, match="adapter: layers of the class Linear have no linear module 'qkv' to adapt"):
        LoraConfig().build(SHAPE, [nn.Linear(2, 2)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrices": []}, "at least one matrix"),
        ({"matrices": ["query", "query"]}, "each once"),
        ({"matrices": ["dense"]}, "query"),
        ({"rank": 0}, "greater than or equal to 1"),
        ({"tasks": ["a"]}, "needs per_task = true"),
    ],
)
def test_options_that_make_no_sense_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LoraConfig(**options)
