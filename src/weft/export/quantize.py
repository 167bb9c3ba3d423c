"""8-bit weights for an ONNX graph, by ONNX Runtime's dynamic quantization.

Weights are rounded once, each output channel on a scale of its own; what enters a layer is rounded while the graph
runs. The body's linear layers and embeddings are quantized. Poolings and heads are small, and the last to touch an
answer: they stay as they are.
"""

import logging
from pathlib import Path


def to_int8(file: Path) -> None:
    """Quantize a graph in place."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(file).graph
    weights = {tensor.name for tensor in graph.initializer}
    # Heads work on [n, width] and are Gemm; only the body multiplies [n, l, width] by weights.
    nodes = [node.name for node in graph.node if node.op_type in ("MatMul", "Gather") and weights & set(node.input)]
    large = file.with_suffix(".fp32")
    file.rename(large)
    logging.getLogger().disabled, before = True, logging.getLogger().disabled  # it recommends a step that gains nothing
    try:
        quantize_dynamic(
            large,
            file,
            nodes_to_quantize=nodes,
            weight_type=QuantType.QInt8,
            per_channel=True,
            # Processors with AVX2 and no VNNI add pairs of products in 16 bits; 7-bit weights cannot overflow there.
            reduce_range=True,
        )
    finally:
        logging.getLogger().disabled = before
    large.unlink()
