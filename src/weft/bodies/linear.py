"""Linear layers of a body, by the faster of torch's two libraries of matrix multiplication.

On a CPU torch multiplies float32 matrices with MKL, which uses AVX-512 on Intel's processors only. oneDNN, which torch
contains too, uses it on all processors that have it: twice the speed on those of AMD. Other processors and other types
of numbers use torch's own choice.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


@cache
def has_onednn() -> bool:
    """Whether oneDNN multiplies float32 matrices on this CPU with AVX-512.

    `ATEN_CPU_CAPABILITY=avx2` in the environment turns it off.
    """
    known = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return known and torch.backends.cpu.get_cpu_capability().startswith("AVX512")


class PackedLinear(nn.Linear):
    """A linear layer that is fast for packed tokens `[t, inputs]`. Other inputs are multiplied as in `nn.Linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        plain = inputs.dtype == self.weight.dtype == torch.float32 and inputs.device.type == "cpu"
        if not plain or inputs.dim() != 2 or not has_onednn() or torch.is_autocast_enabled("cpu"):
            return super().forward(inputs)
        if not torch.is_grad_enabled():
            return multiply(inputs, self.weight, self.bias)
        outputs: Tensor = _Linear.apply(inputs, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return outputs


def multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`inputs` [t, i] times the transpose of `weight` [o, i], float32 on a CPU, by the faster library."""
    if not has_onednn():
        return nn.functional.linear(inputs, weight, bias)
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return outputs


class _Linear(torch.autograd.Function):
    """oneDNN's product with its gradients, which are products of the same kind."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return multiply(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_inputs, to_weight, to_bias = ctx.needs_input_grad
        return (
            multiply(gradient, weight.t()) if to_inputs else None,
            multiply(gradient.t(), inputs.t()) if to_weight else None,
            gradient.sum(0) if to_bias else None,
        )
