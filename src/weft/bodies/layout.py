"""Token layouts of a forward pass, packed or padded, and attention for each.

*Packed* is used for training and prediction: all sequences are concatenated, so linear layers process no padding.
Attention groups sequences of equal length and needs neither padding nor a mask (`attention.py`).
*Padded* is the usual `[n, longest]` layout with a mask, for export. There is no other difference between the two.

Shapes: t tokens, n sequences, l positions, w width, h heads, d = w / h.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.bodies.attention import Bias, Groups, attention
from weft.foundation.values import Encoded


class TokenLayout(ABC):
    """Layout of the tokens in one forward pass, passed to every layer."""

    def __init__(self, positions: Tensor, lengths: Sequence[int], longest: int | None) -> None:
        self.positions = positions
        """[t] or [n, l], position of each token in its sequence."""
        self.lengths = lengths
        """Sequence length of each attention group. The bias is computed per group."""
        self.longest = longest
        """Maximum of `lengths`; None for export, where the length is dynamic."""
        self.shared: Sequence[Tensor] = ()
        """Tensors that the family computes once for all layers of this pass."""

    @abstractmethod
    def attend(self, qkv: Tensor, dropout: float, bias: Bias | None = None, scale: float | None = None) -> Tensor:
        """Map queries, keys and values `[..., 3w]` to the context `[..., w]`; scores are `scale q·k + bias`.

        `scale` defaults to `d ** -0.5`.
        """

    def sequences(self, sizes: Sequence[int], number: int) -> list[int]:
        """Return how many sequences of a group are in each span of tokens; `sizes` are the tokens of each span."""
        raise NotImplementedError("only packed tokens belong to several spans")


class Packed(TokenLayout):
    """Packed layout, `[t, w]`."""

    def __init__(self, encoded: Encoded, heads: int) -> None:
        self.groups = Groups(encoded, heads)
        lengths = [length for _, length in self.groups.sizes]
        super().__init__(encoded.positions, lengths, max(lengths))

    def attend(self, qkv: Tensor, dropout: float, bias: Bias | None = None, scale: float | None = None) -> Tensor:
        return attention(qkv, self.groups, dropout, bias, scale)

    def sequences(self, sizes: Sequence[int], number: int) -> list[int]:
        before = np.searchsorted(self.groups.starts[number], [0, *np.cumsum(sizes)])
        counts: list[int] = np.diff(before).tolist()
        return counts


class Padded(TokenLayout):
    """Padded layout, `[n, l, w]`. Padding is masked out."""

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
            # Not minus infinity: the window of a padding token far from the text can contain no real token.
            mask = torch.where(self.visible, added.to(qkv.dtype), torch.finfo(qkv.dtype).min / 2)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale)
        return context.transpose(1, 2).reshape(n, length, -1)
