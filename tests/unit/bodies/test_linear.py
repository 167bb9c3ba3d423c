"""Linear layers by oneDNN compute what `nn.Linear` does, with its gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from weft.bodies import linear
from weft.bodies.linear import PackedLinear, rounded_up
from weft.foundation.gradients import of_inputs_only


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a CPU with AVX-512, whatever this one has; oneDNN computes on all of them."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(linear, "uses_onednn", lambda: True)


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
        monkeypatch.setattr(linear, "uses_onednn", lambda: False)
        fast(rows(3, 16))
    assert used == [1]


@pytest.mark.parametrize(
    ("capability", "vendor", "mkl", "expected"),
    [
        ("AVX512", "AuthenticAMD", True, True),
        ("AVX512", "GenuineIntel", True, False),  # MKL uses AVX-512, too, and copies less
        ("AVX512", "GenuineIntel", False, True),
        ("AVX2", "AuthenticAMD", True, False),
    ],
)
def test_the_library_by_processor(
    capability: str, vendor: str, mkl: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(linear, "processor_entry", {"vendor_id": vendor}.get)
    assert linear.uses_onednn.__wrapped__() is expected


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


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize("bias", [True, False])
def test_a_search_for_inputs_computes_no_gradients_of_weights(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, fast = pair(16, 8, bias)
    products = []
    real = linear.multiply
    monkeypatch.setattr(linear, "multiply", lambda *given: products.append(1) or real(*given))
    x, z = rows(5, 16).requires_grad_(), rows(5, 16).requires_grad_()
    (expected,) = torch.autograd.grad(plain(x).square().sum(), x)
    with of_inputs_only():
        (found,) = torch.autograd.grad(fast(z).square().sum(), z)
    torch.testing.assert_close(found, expected)
    assert len(products) == 2, "the output, and the gradient of the inputs"
    fast(z).square().sum().backward()
    assert len(products) == 5
    assert fast.weight.grad is not None


@given(st.integers(1, 100_000))
def test_few_sizes_that_are_hardly_larger(count: int) -> None:
    size = rounded_up(count)
    assert count <= size <= max(count + 7, count * 1.125)
    assert rounded_up(size) == size
    octave = range(1 << (count.bit_length() - 1), 1 << count.bit_length())
    few = octave if len(octave) <= 64 else range(octave.start, octave.stop, max(1, len(octave) // 64))
    assert len({rounded_up(n) for n in few}) <= 9


@pytest.mark.usefixtures("onednn")
def test_mixed_precision_has_few_sizes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = nn.functional.linear
    monkeypatch.setattr(nn.functional, "linear", lambda x, *given: seen.append(len(x)) or real(x, *given))
    plain, fast = pair(16, 8)
    x = rows(300, 16)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = fast(x), plain(x)
    assert seen == [320, 300]
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.usefixtures("onednn")
def test_weights_that_are_transposed_in_memory_give_the_same_outputs() -> None:
    plain, fast = pair(48, 130)
    model = nn.Sequential(fast)
    linear.transpose_in_memory(model)
    assert fast.weight.t().is_contiguous()
    torch.testing.assert_close(fast.weight, plain.weight, rtol=0, atol=0)
    with torch.no_grad():
        for count in (1, 7, 300):
            x = rows(count, 48)
            torch.testing.assert_close(fast(x), plain(x), rtol=1e-6, atol=1e-6)


def test_weights_that_another_library_multiplies_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "uses_onednn", lambda: False)
    _, fast = pair(48, 130)
    before = fast.weight.data_ptr()
    linear.transpose_in_memory(nn.Sequential(fast))
    assert fast.weight.data_ptr() == before
