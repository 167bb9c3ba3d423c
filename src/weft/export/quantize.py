"""8-bit weights for an ONNX graph, by ONNX Runtime's dynamic quantization.

Weights are quantized once, with one scale per output channel: with one scale per tensor, the cosine similarity between
MiniLM's vectors before and after is .87. Activations are quantized at run time, with one scale per batch, and this
causes most of the loss. The loss is largest after GELU, whose few large values leave few steps for the others, and in
the first half of the layers, whose outputs later layers build on: there the layer after GELU is not quantized. Neither
are poolings and heads.
"""

import ast
import logging
from pathlib import Path
from typing import Any

SCOPES = "pkg.torch.onnx.name_scopes"
"""metadata key under which torch's exporter records the modules that a node comes from"""


def to_int8(file: Path, layers: int) -> None:
    """Quantize a graph in place; `layers` is the body's number of layers (sets of weights)."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(file)
    del model.graph.value_info[:]  # inner shapes: the library transposes weights and then fails on them
    chosen = quantized_modules(layers)
    products = [node for node in model.graph.node if node.op_type in ("MatMul", "Gather")]
    nodes = [node.name for node in products if module_of(node) in chosen]
    root = logging.getLogger()
    root.disabled, before = True, root.disabled  # the library recommends a preprocessing that has no benefit here
    try:
        quantize_dynamic(
            model,
            file,
            nodes_to_quantize=nodes,
            weight_type=QuantType.QInt8,
            per_channel=True,
            # CPUs with AVX2 but without VNNI add two products in 16 bits; 7-bit weights cannot overflow there.
            reduce_range=True,
        )
    finally:
        root.disabled = before


def quantized_modules(layers: int) -> set[str]:
    """Return the paths of the modules whose weights are quantized."""
    linear = {f"body.layers.{k}.{name}" for k in range(layers) for name in ("qkv", "attention_out", "inner", "outer")}
    kept = {f"body.layers.{k}.outer" for k in range((layers + 1) // 2)}
    return {f"body.embeddings.{name}" for name in ("tokens", "positions", "segments", "project")} | linear - kept


def module_of(node: Any) -> str:
    """Return the innermost module that a node comes from; the last scope is the operation's own name."""
    noted = {entry.key: entry.value for entry in node.metadata_props}.get(SCOPES, "['', '']")
    return str(ast.literal_eval(noted)[-2])
