"""Bodies of published shapes with random weights: speed does not depend on what a body has learnt."""

import shutil
from pathlib import Path
from typing import Any

from weft.bodies.source import find_body

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-base": ("bert", BASE),
    "roberta-base": (
        "roberta",
        BASE | {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "modernbert-base": ("modernbert", {}),
    "deberta-v3-small": (
        "deberta-v2",
        BASE
        | {
            "num_hidden_layers": 6,
            "vocab_size": 128100,
            "type_vocab_size": 0,
            "layer_norm_eps": 1e-7,
            "relative_attention": True,
            "position_buckets": 256,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
        },
    ),
}


def write_shape(name: str, folder: Path) -> Path:
    """A body as `transformers` makes it. All have MiniLM's tokenizer, so that they are compared on the same tokens."""
    import torch
    from transformers import AutoConfig, AutoModel

    model_type, sizes = SHAPES[name]
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(model_type, **sizes)).save_pretrained(folder)
    shutil.copy(find_body("packaged:minilm-l6") / "tokenizer.json", folder)
    return folder
