"""8-bit weights for an ONNX graph, by ONNX Runtime's dynamic quantization.

Weights are rounded once, each output channel on a scale of its own: on one scale for all, MiniLM's vectors turn by a
cosine of .87. What enters a layer is rounded while the graph runs, one scale for a whole batch, and that costs most of
what is lost. It hurts most after GELU, whose few large values leave the others few steps, and most in the first half
of the layers, where later ones build on it: there the layer after GELU stays as it is. So do poolings and heads.
"""

import ast
import logging
from pathlib import Path
from typing import Any

SCOPES = "pkg.torch.onnx.name_scopes"
"""where torch's exporter notes the modules that a node came from"""


def to_int8(file: Path, layers: int) -> None:
    """Quantize the graph of a body with so many layers (sets of weights), in place."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes of inner values: the library turns weights round and then trips over them
    chosen = quantized_modules(layers)
    products = [node for node in model.graph.node if node.op_type in ("MatMul", "Gather")]
    nodes = [node.name for node in products if module_of(node) in chosen]
    root = logging.getLogger()
    root.disabled, before = True, root.disabled  # the library recommends a preparation that gains nothing here
    try:
        quantize_dynamic(
            model,
            file,
            nodes_to_quantize=nodes,
            weight_type=QuantType.QInt8,
            per_channel=True,
            # Processors with AVX2 and without VNNI add two products in 16 bits, which 7-bit weights cannot overflow.
            reduce_range=True,
        )
    finally:
        root.disabled = before


def quantized_modules(layers: int) -> set[str]:
    """Paths of the modules whose weights are rounded."""
    linear = {f"body.layers.{k}.{name}" for k in range(layers) for name in ("qkv", "attention_out", "inner", "outer")}
    kept = {f"body.layers.{k}.outer" for k in range((layers + 1) // 2)}
    return {f"body.embeddings.{name}" for name in ("tokens", "positions", "segments", "project")} | linear - kept


def module_of(node: Any) -> str:
    """The innermost module that a node came from; the last scope is the operation's own name."""
    noted = {entry.key: entry.value for entry in node.metadata_props}.get(SCOPES, "['', '']")
    return str(ast.literal_eval(noted)[-2])
