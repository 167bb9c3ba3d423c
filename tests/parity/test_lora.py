"""LoRA on bodies of every family against PEFT's on those of transformers: states, gradients, merging, folders."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import AutoModel

from tests.families import SMALL, VARIANTS, random_body
from tests.parity.harness import inputs_of, random_sequences, unpad
from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters.lora import Lora, LoraConfig
from weft.bodies.body import Body
from weft.bodies.weights import load_body
from weft.export.peft import PREFIX, peft_content
from weft.export.source import write_json
from weft.foundation.values import Encoded
from weft.tasks.store import save_tensors

CASES = {name: (name, sizes) for name, sizes in SMALL.items()} | VARIANTS
MATRICES: dict[str, Any] = {
    "default": {},
    "all": {"matrices": "all", "rank": 2, "alpha": 6.0},
}
LENGTHS = [5, 12, 1, 12, 40, 33]


def adapted_body(folder: Path, case: str, options: dict[str, Any]) -> tuple[Body, Lora, Encoded]:
    """A random body in evaluation mode in float64, a random adapter on it, and sequences."""
    model_type, sizes = CASES[case]
    random_body(folder, model_type, 50, sizes, norm=1.0)
    body = load_body(folder, dropout=0.0, attention_dropout=0.0).double()
    adapter = LoraConfig(**options).build(body.shape, list(body.layers)).double()
    generator = torch.Generator().manual_seed(1)
    for parameter in adapter.parameters():
        nn.init.normal_(parameter, std=0.1, generator=generator)
    return body.eval(), adapter.eval(), random_sequences(50, LENGTHS)


def states(body: Body, adapter: Lora | None, encoded: Encoded) -> Tensor:
    return body(encoded, None, AdaptedPass([(adapter, len(encoded.ids))]))[-1]


def write_peft(adapter: Lora, body: Body, folder: Path) -> Path:
    folder.mkdir()
    config, tensors = peft_content(adapter, body)
    write_json(folder / "adapter_config.json", config | {"base_model_name_or_path": "body"})
    save_tensors(tensors, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("matrices", MATRICES)
def test_states_and_gradients_equal_pefts(case: str, matrices: str, tmp_path: Path) -> None:
    body, adapter, encoded = adapted_body(tmp_path / "body", case, MATRICES[matrices])
    plain = AutoModel.from_pretrained(tmp_path / "body", dtype=torch.float64)
    folder = write_peft(adapter, body, tmp_path / "peft")
    theirs = PeftModel.from_pretrained(plain, folder, is_trainable=True).double().eval()
    ours = states(body, adapter, encoded)
    expected = unpad(theirs(**inputs_of(body, encoded)).last_hidden_state, encoded)
    assert (ours - states(body, None, encoded)).abs().max() > 1e-3
    assert (ours - expected).abs().max() < 1e-6
    weights = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    (ours * weights).sum().backward()
    (expected * weights).sum().backward()
    for parameter in adapter.parameters():  # what is written of the adapter are its gradients now
        assert parameter.grad is not None
        parameter.data = parameter.grad
    _, gradients = peft_content(adapter, body)
    found = {name.replace(".default", ""): p.grad for name, p in theirs.named_parameters() if p.requires_grad}
    assert {name.replace("base_model.model.", PREFIX) for name in found} == gradients.keys()
    for name, gradient in gradients.items():
        other = found[name]
        assert other is not None
        assert gradient.any()
        own = gradient != 0 if "lora_B" in name else slice(None)  # B of stacked matrices is block diagonal here
        assert (gradient - other)[own].abs().max() < 1e-6 * max(1.0, float(other.abs().max())), name


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_merged_equals_unmerged(case: str, dtype: torch.dtype, tmp_path: Path) -> None:
    body, adapter, encoded = adapted_body(tmp_path / "body", case, MATRICES["all"])
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.mul_(0.5)  # about the size of trained ones
    body.to(dtype), adapter.to(dtype)
    unmerged = states(body, adapter, encoded)
    plain = states(body, None, encoded)
    adapter.merge(list(body.layers))
    merged = states(body, None, encoded)
    assert (merged - plain).abs().max() > 1e-3
    largest = max(1.0, float(unmerged.detach().abs().max()))
    assert (merged - unmerged).abs().max() < largest * (1e-6 if dtype == torch.float32 else 1e-12)


def test_our_start_is_pefts_start(tmp_path: Path) -> None:
    """The same distribution of A, B of zeros, the same default matrices and scale."""
    body, _, _ = adapted_body(tmp_path / "body", "bert", {})
    theirs = get_peft_model(AutoModel.from_pretrained(tmp_path / "body"), PeftConfig(lora_alpha=8))
    torch.manual_seed(0)
    made = LoraConfig().build(body.shape, list(body.layers))
    _, tensors = peft_content(made, body)
    state = {name.replace(".default", ""): p for name, p in theirs.named_parameters() if "lora" in name}
    assert state.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert tensor.shape == state[name].shape
        if "lora_B" in name:
            assert not tensor.any()
        else:
            bound = float(state[name].detach().abs().max())
            assert 0.7 * bound < float(tensor.abs().max()) < 1.4 * bound
    assert LoraConfig().scale == 1.0
