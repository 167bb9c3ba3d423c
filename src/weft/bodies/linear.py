"""Linear layers of a body, by the faster of torch's two libraries of matrix multiplication.

On a CPU torch multiplies float32 matrices with MKL, which uses AVX-512 on Intel's processors only. oneDNN, which torch
contains too, uses it on all processors that have it: twice the speed on those of AMD. On Intel's, MKL is faster: it
reads the transposed matrices of a backward pass as they are, and oneDNN copies them first. Other processors and other
types of numbers use torch's own choice.

oneDNN compiles a kernel of about 1.5 MB for each shape and keeps a thousand of them. Packed tokens have another number
in almost every pass, so rows of zeros are added up to one of eight sizes per power of two.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from weft.foundation.devices import processor_entry
from weft.foundation.gradients import needs_weights


@cache
def uses_onednn() -> bool:
    """Whether oneDNN multiplies float32 matrices on this CPU faster than MKL: with AVX-512, not made by Intel.

    `ATEN_CPU_CAPABILITY=avx2` in the environment turns it off.
    """
    known = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    is_mkl_slower = torch.backends.cpu.get_cpu_capability().startswith("AVX512") and (
        processor_entry("vendor_id") != "GenuineIntel" or not torch.backends.mkl.is_available()
    )
    return known and is_mkl_slower


class PackedLinear(nn.Linear):
    """A linear layer that is fast for packed tokens `[t, inputs]`. Other inputs are multiplied as in `nn.Linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 2 or inputs.device.type != "cpu" or self.weight.dtype != torch.float32 or not uses_onednn():
            return super().forward(inputs)
        if torch.is_autocast_enabled("cpu"):  # torch chooses oneDNN itself
            return super().forward(with_zero_rows(inputs))[: len(inputs)]
        if inputs.dtype != torch.float32:
            return super().forward(inputs)
        if not torch.is_grad_enabled():
            return multiply(with_zero_rows(inputs), self.weight, self.bias)[: len(inputs)]
        weights: list[Tensor | None] = [self.weight, self.bias]
        if not needs_weights():
            weights = [None if own is None else own.detach() for own in weights]
        outputs: Tensor = _Linear.apply(inputs, *weights)  # type: ignore[no-untyped-call]
        return outputs


def transpose_in_memory(model: nn.Module) -> None:
    """Store the weights of all `PackedLinear` in the order in which oneDNN's products read them.

    It copies each weight into this order in every product otherwise, which takes a third of the time of a product with
    ten tokens. The model keeps its values; it no longer shares memory-mapped weights with other processes.
    """
    if not uses_onednn():
        return
    for module in model.modules():
        if isinstance(module, PackedLinear):
            module.weight.data = module.weight.data.t().contiguous().t()


def rounded_up(rows: int) -> int:
    """Return the next of the eight sizes per power of two, multiples of 8: at most 1/8 more than `rows`, or 7 rows."""
    unit = max(8, 1 << max(0, rows.bit_length() - 4))
    return -(-rows // unit) * unit


def with_zero_rows(inputs: Tensor) -> Tensor:
    """Add rows of zeros to `inputs` [t, i], up to one of few sizes."""
    missing = rounded_up(len(inputs)) - len(inputs)
    return nn.functional.pad(inputs, (0, 0, 0, missing)) if missing else inputs


def multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`inputs` [t, i] times the transpose of `weight` [o, i], float32 on a CPU, by the faster library."""
    if not uses_onednn():
        return nn.functional.linear(inputs, weight, bias)
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return outputs


class _Linear(torch.autograd.Function):
    """oneDNN's product with its gradients, which are products of the same kind."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padded = with_zero_rows(inputs)
        ctx.save_for_backward(padded, weight)
        return multiply(padded, weight, bias)[: len(inputs)]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        padded = with_zero_rows(gradient.contiguous())
        to_inputs, to_weight, to_bias = ctx.needs_input_grad
        return (
            multiply(padded, weight.t())[: len(gradient)] if to_inputs else None,
            multiply(padded.t(), inputs.t()) if to_weight else None,
            gradient.sum(0) if to_bias else None,
        )
