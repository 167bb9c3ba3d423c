"""ModernBERT: pre-norm layers, rotary position embeddings, gated linear units, local attention in most layers.

Shapes: t tokens (packed) or n x l (padded), h heads, d dimensions per head.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from weft.bodies.adapted import PLAIN, AdaptedLayer
from weft.bodies.dropout import Dropout
from weft.bodies.embeddings import Embeddings
from weft.bodies.family import UNTYPED_KEYS, Family, Names
from weft.bodies.layout import TokenLayout
from weft.bodies.linear import PackedLinear
from weft.bodies.shape import ACTIVATIONS, BodyShape
from weft.foundation.errors import UserError


@dataclass(frozen=True)
class ModernShape(BodyShape):
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    window: int = 128
    """Size of the local attention window in tokens, half of it on each side."""
    global_every: int = 3
    """Layers 0, k, 2k, ... attend to the whole sequence."""
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0

    def is_windowed(self, layer: int) -> bool:
        return layer % self.global_every != 0

    def norm(self) -> nn.LayerNorm:
        return nn.LayerNorm(self.width, eps=self.norm_eps, bias=self.norm_bias)


class Rotations(nn.Module):
    """Tensors shared by all layers of a pass: cosines and sines of each token's angles, then one window per group."""

    def __init__(self, shape: ModernShape) -> None:
        super().__init__()
        self.thetas = (shape.global_theta, shape.local_theta)
        self.width = shape.width // shape.heads
        self.reach = shape.window // 2

    def forward(self, layout: TokenLayout) -> list[Tensor]:
        tables = [table for theta in self.thetas for table in self._angles(layout.positions, theta)]
        return tables + [self._window(length, layout.positions.device) for length in layout.lengths]

    def _angles(self, positions: Tensor, theta: float) -> tuple[Tensor, Tensor]:
        """Return cosines and sines, [..., d / 2], always in fp32: half precision is too coarse for large positions."""
        powers = torch.arange(0, self.width, 2, dtype=torch.float32, device=positions.device) / self.width
        angles = positions[..., None].float() * (1.0 / theta**powers)
        return angles.cos(), angles.sin()

    def _window(self, length: int, device: torch.device) -> Tensor:
        """Return the window mask [l, l]: minus infinity outside the window, 0 inside."""
        places = torch.arange(length, device=device)
        far = (places[:, None] - places).abs() > self.reach
        return torch.zeros(length, length, device=device).masked_fill(far, float("-inf"))


class _Rotate(torch.autograd.Function):
    """Rotate the pair (x_k, x_{k + d/2}) of every query and key by its token's k-th angle. Values are unchanged."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return turned(qkv, cos, sin)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return turned(gradient, cos, -sin), None, None


def turned(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate queries and keys in `qkv [..., 3 h d]`; `cos` and `sin` are `[..., d / 2]`, of the same dtype."""
    heads = qkv.shape[-1] // (6 * cos.shape[-1])
    first, second = qkv.unflatten(-1, (3 * heads, 2, -1))[..., : 2 * heads, :, :].unbind(-2)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    pairs = torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-2)
    return torch.cat([pairs.flatten(-3), qkv[..., 4 * heads * cos.shape[-1] :]], dim=-1)


class ModernLayer(nn.Module):
    """Attention and gated feed-forward blocks, each with a norm before it and a residual connection around both."""

    def __init__(self, shape: ModernShape, number: int) -> None:
        super().__init__()
        self.attention_norm = shape.norm() if number else None  # the embeddings are already normalized
        self.qkv = PackedLinear(shape.width, 3 * shape.width, bias=shape.attention_bias)
        self.attention_out = PackedLinear(shape.width, shape.width, bias=shape.attention_bias)
        self.inner_norm = shape.norm()
        self.inner = PackedLinear(shape.width, 2 * shape.inner, bias=shape.mlp_bias)
        self.outer = PackedLinear(shape.inner, shape.width, bias=shape.mlp_bias)
        self.activation = ACTIVATIONS[shape.activation]
        self.dropout = Dropout(shape.dropout)
        self.out_dropout = Dropout(shape.attention_dropout)
        self.attention_dropout = shape.attention_dropout
        self.windowed = shape.is_windowed(number)
        self.reach = shape.window // 2

    def forward(
        self, hidden: Tensor, layout: TokenLayout, only: Tensor | None = None, adapted: AdaptedLayer = PLAIN
    ) -> Tensor:
        """Return the hidden states of all tokens, or of the tokens with the indices `only`."""
        normed = hidden if self.attention_norm is None else self.attention_norm(hidden)
        context = self._context(adapted.linear("qkv", self.qkv, normed), layout)
        beside = adapted.beside(normed, layout, self.attention_dropout if self.training else 0.0)
        if only is not None:
            hidden, context = hidden.index_select(0, only), context.index_select(0, only)
            beside = None if beside is None else beside.index_select(0, only)
            adapted = adapted.at(only)
        attended = self.out_dropout(adapted.linear("attention_out", self.attention_out, context))
        hidden = hidden + adapted.block("attention", attended)
        raised, gate = adapted.linear("inner", self.inner, self.inner_norm(hidden)).chunk(2, dim=-1)
        gated = self.dropout(self.activation(raised) * gate)
        added = adapted.block("feed-forward", adapted.linear("outer", self.outer, gated))
        return hidden + (added if beside is None else added + beside)

    def _context(self, qkv: Tensor, layout: TokenLayout) -> Tensor:
        cos, sin = (table.to(qkv.dtype) for table in layout.shared[2 * self.windowed :][:2])
        if torch.compiler.is_exporting():  # an exported graph has no backward pass
            rotated = turned(qkv, cos, sin)
        else:
            rotated = _Rotate.apply(qkv, cos, sin)  # type: ignore[no-untyped-call]
        bias = partial(self._window, layout) if self.windowed else None
        return layout.attend(rotated, self.attention_dropout if self.training else 0.0, bias)

    def _window(self, layout: TokenLayout, number: int, _queries: Tensor, _keys: Tensor) -> Tensor | None:
        """Return the window mask of a group, or None if its sequences are too short to be masked."""
        if layout.longest is not None and layout.lengths[number] <= self.reach + 1:
            return None
        return layout.shared[4 + number]


class ModernEmbeddings(Embeddings):
    """Token embeddings only: positions are encoded by rotation."""

    def __init__(self, shape: ModernShape) -> None:
        super().__init__(shape, position_rows=0)
        self.norm = shape.norm()


class ModernBert(Family):
    """Warner et al., "Smarter, Better, Faster, Longer", 2024."""

    title = "ModernBERT"
    model_type = "modernbert"
    architecture = "ModernBertModel"
    default = ModernShape(
        model_type="modernbert",
        vocabulary=50368,
        layers=22,
        inner=1152,
        positions=8192,
        segments=0,
        norm_eps=1e-5,
        dropout=0.0,
        attention_dropout=0.0,
        pad=50283,
    )
    keys: ClassVar[dict[str, str]] = UNTYPED_KEYS | {
        "norm_eps": "norm_eps",
        "activation": "hidden_activation",
        "dropout": "mlp_dropout",
        "attention_dropout": "attention_dropout",
        "norm_bias": "norm_bias",
        "attention_bias": "attention_bias",
        "mlp_bias": "mlp_bias",
        "window": "local_attention",
        "global_every": "global_attn_every_n_layers",
    }
    once: ClassVar[Names] = {
        "embeddings.tokens": ("embeddings.tok_embeddings",),
        "embeddings.norm": ("embeddings.norm",),
        "final": ("final_norm",),
    }
    per_layer: ClassVar[Names] = {
        "attention_norm": ("attn_norm",),
        "qkv": ("attn.Wqkv",),
        "attention_out": ("attn.Wo",),
        "inner_norm": ("mlp_norm",),
        "inner": ("mlp.Wi",),
        "outer": ("mlp.Wo",),
    }
    layer_prefix = "layers.{}."
    prefixes = ("model.",)
    has_plain_tagger = False
    not_body = ("head.", "decoder.", "classifier.", "qa_outputs.")

    def read(self, config: Mapping[str, Any], path: Path) -> BodyShape:
        shape = super().read(config, path)
        assert isinstance(shape, ModernShape)
        pad = config.get("pad_token_id", self.default.pad)
        pad = pad if type(pad) is int and 0 <= pad < shape.vocabulary else 0
        shape = replace(shape, pad=pad, global_every=_global_every(config, shape, path))
        return replace(
            shape,
            global_theta=_theta(config, "full_attention", "global_rope_theta", shape.global_theta, path),
            local_theta=_theta(config, "sliding_attention", "local_rope_theta", shape.local_theta, path),
        )

    def check(self, config: Mapping[str, Any], shape: BodyShape, path: Path) -> None:
        super().check(config, shape, path)
        if (other := config.get("embedding_dropout", shape.dropout)) != shape.dropout:
            raise UserError(f"{path}: embedding_dropout is {other!r}, expected mlp_dropout's {shape.dropout}")
        if shape.width // shape.heads % 2:
            raise UserError(f"{path}: heads of {shape.width // shape.heads} numbers cannot be rotated in pairs")

    def config(self, shape: BodyShape) -> dict[str, Any]:
        """Add rotary bases and layer types to the config, under the keys of old and new versions of `transformers`."""
        assert isinstance(shape, ModernShape)
        kinds = ["sliding_attention" if shape.is_windowed(k) else "full_attention" for k in range(shape.layers)]
        ropes = {"full_attention": shape.global_theta, "sliding_attention": shape.local_theta}
        return super().config(shape) | {
            "embedding_dropout": shape.dropout,
            "global_rope_theta": shape.global_theta,
            "local_rope_theta": shape.local_theta,
            "layer_types": kinds,
            "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in ropes.items()},
        }

    def embeddings(self, shape: BodyShape) -> Embeddings:
        assert isinstance(shape, ModernShape)
        return ModernEmbeddings(shape)

    def layers(self, shape: BodyShape) -> list[nn.Module]:
        assert isinstance(shape, ModernShape)
        return [ModernLayer(shape, number) for number in range(shape.layers)]

    def relative(self, shape: BodyShape) -> nn.Module:
        assert isinstance(shape, ModernShape)
        return Rotations(shape)

    def can_cut(self, layers: int, shape: BodyShape) -> bool:
        """Allow only the full depth: the states of inner layers do not pass through the final norm."""
        return layers == shape.layers

    def final(self, shape: BodyShape) -> nn.Module:
        assert isinstance(shape, ModernShape)
        return shape.norm()


def _global_every(config: Mapping[str, Any], shape: ModernShape, path: Path) -> int:
    """Return k if every k-th layer is global. New versions list all layer types; irregular lists are rejected."""
    listed = config.get("layer_types")
    if listed is None:
        if shape.global_every < 1:
            raise UserError(f"{path}: global_attn_every_n_layers is {shape.global_every}, expected 1 or more")
        return shape.global_every
    kinds = {True: "sliding_attention", False: "full_attention"}
    for every in range(1, shape.layers + 1):
        if listed == [kinds[k % every != 0] for k in range(shape.layers)]:
            return every
    raise UserError(f"{path}: layer_types is {listed!r}, expected a full_attention layer first and then every k-th")


def _theta(config: Mapping[str, Any], kind: str, old: str, default: float, path: Path) -> float:
    """Return the rotary base of a layer type, from the keys of new or old versions of `transformers`."""
    ropes = config.get("rope_parameters")
    own = ropes.get(kind) if isinstance(ropes, dict) else None
    own = own if isinstance(own, dict) else {}
    if own.get("rope_type", "default") != "default" or config.get("rope_scaling"):
        raise UserError(f"{path}: rope_parameters.{kind} is {own}, expected rope_type 'default' and no rope_scaling")
    theta = own.get("rope_theta", config.get(old))
    theta = default if theta is None else theta
    if type(theta) not in (int, float) or not theta > 0:
        raise UserError(f"{path}: the rotary base of {kind} is {theta!r}, expected a number above 0")
    return float(theta)
