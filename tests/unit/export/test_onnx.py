"""What an export to ONNX guards against, and which weights become 8-bit."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import weft
from tests.exported import TEXTS, write_model
from weft.export import export
from weft.export.agreement import largest_difference, real_rows
from weft.export.quantize import quantized_modules, to_int8
from weft.nn.pooling.mean import Mean


@pytest.fixture(scope="module")
def model_folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = {"like": "sentiment", "pooling": "mean"}
    return write_model(tiny, tmp_path_factory.mktemp("unit"), {"sentiment": own}, optimizer={"precision": "fp64"})


def test_a_graph_that_disagrees_is_never_delivered(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A padded form that counts padding is the mistake that the comparison is for."""
    monkeypatch.setattr(Mean, "padded", lambda _, hidden, __: hidden.mean(dim=1))
    with pytest.raises(weft.UserError, match="the ONNX graph of 'sentiment' differs from the model by"):
        export(model_folder, "onnx", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def exported(model_folder: Path) -> Path:
    out = model_folder.parent / "onnx"
    export(model_folder, "onnx", out)
    return out


def test_a_double_precision_model_leaves_in_single_precision(model_folder: Path, exported: Path) -> None:
    model = weft.load(model_folder)
    assert model.network.body.pooler.weight.dtype == torch.float64
    assert largest_difference(model, weft.load(exported), "sentiment") < 1e-4


def test_the_body_becomes_8_bit_and_the_head_does_not(exported: Path, tmp_path: Path) -> None:
    file = tmp_path / "single.onnx"
    file.write_bytes((exported / "single.onnx").read_bytes())
    to_int8(file, layers=2)
    graph = onnx.load(file).graph
    kinds = [node.op_type for node in graph.node]
    # four linear layers in each of two layers, but not the one after GELU in the first; the head is none of them
    assert kinds.count("MatMulInteger") == 7 == sum("layers" in path for path in quantized_modules(2))
    matrices = [tensor for tensor in graph.initializer if len(tensor.dims) == 2]
    assert sum(tensor.data_type == onnx.TensorProto.INT8 for tensor in matrices) == 7
    assert sum(tensor.data_type == onnx.TensorProto.UINT8 for tensor in matrices) == 3  # embeddings
    # 7-bit weights: what cannot overflow in 16 bits
    weights = [onnx.numpy_helper.to_array(t) for t in matrices if t.data_type == onnx.TensorProto.INT8]
    assert max(int(np.abs(weight.astype(int)).max()) for weight in weights) <= 64


def test_the_comparison_sees_all_lengths(model_folder: Path) -> None:
    model = weft.load(model_folder)
    lengths = {len(sequence.ids) for row in real_rows(model, "sentiment") for sequence in row}
    assert min(lengths) <= 4
    assert max(lengths) == model.config.max_length


def test_no_text_gives_no_vector_and_equal_texts_equal_ones(exported: Path) -> None:
    model = weft.load(exported)
    assert model.embed([]).shape == (0, 16)
    assert model.predict("sentiment", []) == []
    twice = model.embed([TEXTS[3], TEXTS[1], TEXTS[3]])
    assert np.array_equal(twice[0], twice[2])
