"""Linear layers by oneDNN compute what `nn.Linear` does, with its gradients."""

import pytest
import torch
from torch import Tensor, nn

from weft.bodies import linear
from weft.bodies.linear import PackedLinear


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a CPU with AVX-512, whatever this one has; oneDNN computes on all of them."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(linear, "has_onednn", lambda: True)


def pair(inputs: int, outputs: int, bias: bool = True) -> tuple[nn.Linear, PackedLinear]:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        plain = nn.Linear(inputs, outputs, bias=bias)
    fast = PackedLinear(inputs, outputs, bias=bias)
    fast.load_state_dict(plain.state_dict())
    return plain, fast


def rows(count: int, width: int) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count))


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("count", [1, 7, 300])
@pytest.mark.parametrize(("inputs", "outputs"), [(48, 130), (96, 32)])
def test_outputs_and_gradients_are_those_of_a_plain_layer(inputs: int, outputs: int, count: int, bias: bool) -> None:
    plain, fast = pair(inputs, outputs, bias)
    found = []
    for layer in (plain, fast):
        x = rows(count, inputs).requires_grad_()
        y = layer(x)
        (y * rows(count, outputs)).sum().backward()
        found.append([y.detach(), x.grad, *(p.grad for p in layer.parameters())])
        with torch.no_grad():
            torch.testing.assert_close(layer(x), y.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("onednn")
def test_it_is_used_where_it_applies_only(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    real = linear.multiply
    monkeypatch.setattr(linear, "multiply", lambda *given: used.append(1) or real(*given))
    _, fast = pair(16, 8)
    with torch.no_grad():
        fast(rows(3, 16))
        assert used == [1]
        fast(rows(6, 16).view(2, 3, 16))  # padded, for export
        PackedLinear(16, 8, dtype=torch.float64)(rows(3, 16).double())
        with torch.autocast("cpu", torch.bfloat16):
            assert fast(rows(3, 16)).dtype == torch.bfloat16
        monkeypatch.setattr(linear, "has_onednn", lambda: False)
        fast(rows(3, 16))
    assert used == [1]


@pytest.mark.usefixtures("onednn")
def test_gradients_of_a_sum_and_of_frozen_weights() -> None:
    """The gradient of a sum is one expanded number; frozen weights need no gradient."""
    plain, fast = pair(16, 8)
    for layer in (plain, fast):
        layer.weight.requires_grad_(False)
    x, z = rows(5, 16).requires_grad_(), rows(5, 16).requires_grad_()
    plain(x).sum().backward()
    fast(z).sum().backward()
    torch.testing.assert_close(z.grad, x.grad)
    assert fast.weight.grad is None
    torch.testing.assert_close(fast.bias.grad, plain.bias.grad)
