"""How the sequences of a pass lie, and so how their tokens attend to each other.

*Packed* is what training and prediction use: all sequences lie end to end, so that linear layers see only real tokens,
and attention works on sequences of equal length together, so that it needs neither padding nor mask (`attention.py`).
*Padded* is the ordinary `[n, longest]` layout with a mask, for export. Nothing else differs between the two.

Shapes: t tokens, n sequences, l positions, w width, h heads, d = w / h.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.bodies.attention import Bias, Groups, attention
from weft.foundation.values import Encoded


class TokenLayout(ABC):
    """What a layer knows of the pass that it is part of."""

    def __init__(self, positions: Tensor, lengths: Sequence[int], longest: int | None) -> None:
        self.positions = positions
        """[t] or [n, l], place of each token in its sequence"""
        self.lengths = lengths
        """of each group of sequences that attend together; a bias is asked for group by group"""
        self.longest = longest
        """the largest of them, unless it is left open for export"""
        self.shared: Sequence[Tensor] = ()
        """what the family computes once for all layers of this pass"""

    @abstractmethod
    def attend(self, qkv: Tensor, dropout: float, bias: Bias | None = None, scale: float | None = None) -> Tensor:
        """Queries, keys and values `[..., 3w]` -> context `[..., w]`; scores are `scale q·k + bias`.

        `scale` defaults to `d ** -0.5`.
        """


class Packed(TokenLayout):
    """`[t, w]`"""

    def __init__(self, encoded: Encoded, heads: int) -> None:
        self.groups = Groups(encoded, heads)
        lengths = [length for _, length in self.groups.sizes]
        super().__init__(encoded.positions, lengths, max(lengths))

    def attend(self, qkv: Tensor, dropout: float, bias: Bias | None = None, scale: float | None = None) -> Tensor:
        return attention(qkv, self.groups, dropout, bias, scale)


class Padded(TokenLayout):
    """`[n, l, w]`; padding is never attended to"""

    def __init__(self, mask: Tensor, heads: int) -> None:
        """`mask` is 1 for real tokens and 0 for padding."""
        length = mask.shape[1]
        super().__init__(torch.arange(length, device=mask.device).expand_as(mask), [length], None)
        self.heads = heads
        self.visible = mask.bool()[:, None, None, :]

    def attend(self, qkv: Tensor, dropout: float, bias: Bias | None = None, scale: float | None = None) -> Tensor:
        n, length, _ = qkv.shape
        q, k, v = qkv.view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        added = None if bias is None else bias(0, q, k)
        mask = self.visible
        if added is not None:
            # Not minus infinity: the window of a padding token far from the text has no real token at all.
            mask = torch.where(self.visible, added.to(qkv.dtype), torch.finfo(qkv.dtype).min / 2)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale)
        return context.transpose(1, 2).reshape(n, length, -1)
