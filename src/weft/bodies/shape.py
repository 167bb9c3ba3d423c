"""Hyperparameters of a body's architecture."""

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


@dataclass(frozen=True)
class BodyShape:
    """Hyperparameters common to all families. Families extend it. `weights.py` reads them from config.json."""

    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    """Maximum sequence length in tokens."""
    segments: int = 2
    """Number of token types. With fewer than two, token types cannot distinguish the texts of a pair."""
    norm_eps: float = 1e-12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    model_type: str = "bert"
    """Family, as in config.json."""
    pad: int = 0
    """Id of the padding token. Packed sequences do not need it, but position offsets and other libraries do."""


@dataclass(frozen=True)
class FactorizedShape(BodyShape):
    """Hyperparameters of families whose token embeddings are narrower than their layers."""

    embedding_width: int = 128
