"""The layer of BERT and its kin."""

from torch import Tensor, nn

from weft.bodies.dropout import Dropout
from weft.bodies.layout import TokenLayout
from weft.bodies.shape import ACTIVATIONS, BodyShape


class Layer(nn.Module):
    """attention and feed-forward, each with a residual connection and a LayerNorm after it"""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.attention_out = nn.Linear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.inner = nn.Linear(shape.width, shape.inner)
        self.outer = nn.Linear(shape.inner, shape.width)
        self.outer_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.activation = ACTIVATIONS[shape.activation]
        self.dropout = Dropout(shape.dropout)
        self.attention_dropout = shape.attention_dropout

    def forward(self, hidden: Tensor, layout: TokenLayout, only: Tensor | None = None) -> Tensor:
        """The states of all tokens after this layer, or `only` of some."""
        context = self.context(hidden, layout, self.attention_dropout if self.training else 0.0)
        if only is not None:
            hidden, context = hidden.index_select(0, only), context.index_select(0, only)
        hidden = self.attention_norm(hidden + self.dropout(self.attention_out(context)))
        raised = self.outer(self.activation(self.inner(hidden)))
        normed: Tensor = self.outer_norm(hidden + self.dropout(raised))
        return normed

    def context(self, hidden: Tensor, layout: TokenLayout, dropout: float) -> Tensor:
        """What tokens read of each other; a family with a bias adds it here."""
        return layout.attend(self.qkv(hidden), dropout)
