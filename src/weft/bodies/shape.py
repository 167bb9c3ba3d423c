"""The numbers that fix a body."""

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
    """What every family has; a family with more numbers extends it. `weights.py` reads them from config.json."""

    vocabulary: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    """tokens of the longest sequence"""
    segments: int = 2
    """token types; a body with fewer than two cannot tell the texts of a pair apart by their types"""
    norm_eps: float = 1e-12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    model_type: str = "bert"
    """names the family, as in config.json"""
    pad: int = 0
    """the padding token: no sequence needs it here, but positions and other libraries do"""
