"""Weights of a loaded model stay in the memory-mapped file, so that processes share them."""

from pathlib import Path

import pytest
import torch

from tests.exported import write_model
from weft.bodies.weights import load_body
from weft.inference.model import load


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("mapped"), {"mood": {"like": "sentiment"}})


def mapped_file(address: int) -> str:
    """The file that an address of this process is mapped from, or an empty string."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            return " ".join(line.split()[5:])
    return ""


def test_weights_stay_in_the_file(folder: Path) -> None:
    file = str(folder / "model.safetensors")
    mapped, copied = load_body(folder, mapped=True), load_body(folder)
    own = {name for name, tensor in mapped.named_parameters() if mapped_file(tensor.data_ptr()) != file}
    assert {name.split(".", 2)[2] for name in own} <= {"qkv.weight", "qkv.bias"}  # stacked from three tensors
    assert all(mapped_file(tensor.data_ptr()) != file for tensor in copied.parameters())
    assert all(torch.equal(one, other) for one, other in zip(mapped.parameters(), copied.parameters(), strict=True))


def test_a_write_changes_neither_the_file_nor_another_model(folder: Path) -> None:
    before = (folder / "model.safetensors").read_bytes()
    one, other = load(folder, "cpu"), load(folder, "cpu")
    expected = other.predict("mood", "a cat").probabilities
    with torch.no_grad():
        for parameter in one.network.parameters():
            parameter.add_(1.0)
    assert (folder / "model.safetensors").read_bytes() == before
    assert other.predict("mood", "a cat").probabilities == expected
    assert load(folder, "cpu").predict("mood", "a cat").probabilities == expected
