"""Where `transformers` rounds to fp32 although the model is in float64, so that nothing could be compared."""

import pytest
from torch import Tensor
from transformers.models.modernbert import modeling_modernbert


@pytest.fixture
def exact_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """ModernBERT's rotation, by the library's own formula, in the precision of queries and keys."""

    def rotate(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        half = modeling_modernbert.rotate_half
        return q * cos + half(q) * sin, k * cos + half(k) * sin

    monkeypatch.setattr(modeling_modernbert, "apply_rotary_pos_emb", rotate)
