"""Post-norm transformer layer of BERT and related families."""

from torch import Tensor, nn

from weft.bodies.adapted import PLAIN, AdaptedLayer
from weft.bodies.dropout import Dropout
from weft.bodies.layout import TokenLayout
from weft.bodies.linear import PackedLinear
from weft.bodies.shape import ACTIVATIONS, BodyShape


class Layer(nn.Module):
    """Attention and feed-forward blocks, each followed by a residual connection and LayerNorm."""

    def __init__(self, shape: BodyShape) -> None:
        super().__init__()
        self.qkv = PackedLinear(shape.width, 3 * shape.width)
        self.attention_out = PackedLinear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.inner = PackedLinear(shape.width, shape.inner)
        self.outer = PackedLinear(shape.inner, shape.width)
        self.outer_norm = nn.LayerNorm(shape.width, eps=shape.norm_eps)
        self.activation = ACTIVATIONS[shape.activation]
        self.dropout = Dropout(shape.dropout)
        self.attention_dropout = shape.attention_dropout

    def forward(
        self, hidden: Tensor, layout: TokenLayout, only: Tensor | None = None, adapted: AdaptedLayer = PLAIN
    ) -> Tensor:
        """Return the hidden states of all tokens, or of the tokens with the indices `only`."""
        dropout = self.attention_dropout if self.training else 0.0
        context = self.context(hidden, layout, dropout, adapted)
        beside = adapted.beside(hidden, layout, dropout)
        if only is not None:
            hidden, context = hidden.index_select(0, only), context.index_select(0, only)
            beside = None if beside is None else beside.index_select(0, only)
            adapted = adapted.at(only)
        attended = self.dropout(adapted.linear("attention_out", self.attention_out, context))
        hidden = self.attention_norm(hidden + adapted.block("attention", attended))
        raised = self.activation(adapted.linear("inner", self.inner, hidden))
        raised = adapted.block("feed-forward", self.dropout(adapted.linear("outer", self.outer, raised)))
        normed: Tensor = self.outer_norm(hidden + (raised if beside is None else raised + beside))
        return normed

    def context(self, hidden: Tensor, layout: TokenLayout, dropout: float, adapted: AdaptedLayer) -> Tensor:
        """Return the attention context. Families with an attention bias override this method."""
        return layout.attend(adapted.linear("qkv", self.qkv, hidden), dropout)
