"""Export of LoRA adapters as PEFT folders, which `peft.PeftModel.from_pretrained` opens on the plain body."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from weft.bodies.adapters.lora import Lora, LoraLayer
from weft.bodies.body import Body
from weft.export.classifier import save_body
from weft.export.outcome import Outcome
from weft.export.source import ExportSource, write_json
from weft.export.tokenizer_file import save_tokenizer
from weft.export.transformers import body_folder
from weft.foundation.config import file_name
from weft.foundation.errors import UserError
from weft.tasks.store import save_tensors

SHARED = "adapter"
"""the folder of an adapter that all tasks share"""
PREFIX = "base_model.model."
"""what PEFT puts before the names of a body's modules"""


def write(source: ExportSource, folder: Path) -> Outcome:
    """Write `TASK/` for the adapter of each task, or `adapter/` for a shared one, and the plain body in `body/`."""
    adapters: dict[str, nn.Module] = dict(source.network.adapters.items())
    if source.network.adapter is not None:
        adapters = {SHARED: source.network.adapter}
    if not adapters:
        raise UserError("--to peft: the model has no adapter; use --to transformers for a whole model")
    outcome, body, place = Outcome(), source.network.body, body_folder(source)
    for owner, adapter in adapters.items():
        if not isinstance(adapter, Lora):
            chosen = source.model.config.adapter
            assert chosen is not None
            raise UserError(f'--to peft: adapter = "{chosen.name}" is not LoRA, which PEFT reads; use --to onnx')
        own = folder / file_name(owner)
        own.mkdir()
        config, tensors = peft_content(adapter, body)
        write_json(own / "adapter_config.json", config | {"base_model_name_or_path": place})
        save_tensors(tensors, own / "adapter_model.safetensors")
        what = "the adapter of all tasks" if owner == SHARED and source.network.adapter is not None else owner
        opens = f'PeftModel.from_pretrained(AutoModel.from_pretrained("{place}"), "{own.name}")'
        outcome.written[what] = f"{own.name}/: {opens}; without heads"
    (folder / place).mkdir()
    save_body(body, body.shape.layers, folder / place)
    save_tokenizer(source, folder / place, "cross")
    outcome.written["the body"] = f"{place}/: AutoModel, without adapters"
    return outcome


def peft_content(adapter: Lora, body: Body) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return adapter_config.json and the tensors of a PEFT folder, under Hugging Face's names.

    Where the family's own checkpoint stacks query, key and value in one matrix, PEFT adapts that matrix: the factors
    are stacked, too, so the rank is a multiple of ours and alpha the same multiple.
    """
    config, table = adapter.config, body.family.names(body.shape)
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    for number, layer in enumerate(adapter.layers):
        assert isinstance(layer, LoraLayer)
        for module in sorted(layer.sites):
            theirs = table[f"layers.{number}.{module}"]
            factors = [layer.factors(module)] if len(theirs) == 1 else layer.separate(module)
            for name, (a, b) in zip(theirs, factors, strict=True):
                if not len(a):
                    continue  # query, key or value is not adapted
                ranks[name] = len(a)
                tensors[f"{PREFIX}{name}.lora_A.weight"] = a.detach().contiguous()
                tensors[f"{PREFIX}{name}.lora_B.weight"] = b.detach().contiguous()
    stacked = {name: rank for name, rank in ranks.items() if rank != config.rank}
    content = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": config.dropout,
        "rank_pattern": stacked,
        "alpha_pattern": {name: rank * config.scale for name, rank in stacked.items()},
        "target_modules": sorted(ranks),
        "bias": "none",
        "inference_mode": True,
    }
    return content, tensors
