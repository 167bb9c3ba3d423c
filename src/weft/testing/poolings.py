"""The contract of a pooling."""

import torch

from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.foundation.values import Encoded
from weft.nn.pooling.base import PoolingOptions
from weft.testing.configs import check_config, require, require_close

SHAPE = BodyShape(vocabulary=9, width=6, layers=2, heads=2, inner=8, positions=12)
LENGTHS = (4, 2, 3)


def check_pooling(config: PoolingOptions) -> None:
    """Check that a pooling returns one vector per sequence, from the tokens of that sequence only, or one per token.

    `padded`, which exported models use, must return the same vectors as `forward`.
    """
    check_config(config)
    pooling = config.build(Body(SHAPE)).eval()
    where = type(pooling).__name__
    tokens = sum(LENGTHS)
    encoded = Encoded(torch.zeros(tokens, dtype=torch.long), torch.zeros(tokens, dtype=torch.long), LENGTHS)
    hidden = torch.randn(tokens, SHAPE.width, generator=torch.Generator().manual_seed(0)).requires_grad_()
    vectors = pooling(hidden, encoded)
    found, expected = list(vectors.shape), [tokens if pooling.keeps_tokens else len(LENGTHS), pooling.width]
    require(found == expected, f"{where}: returns shape {found}, expected {expected}")
    require(
        pooling.keeps_tokens == config.keeps_tokens,
        f"{where}: `keeps_tokens` differs between the config and the module",
    )
    (vectors[4:6] if pooling.keeps_tokens else vectors[1]).sum().backward()
    touched = hidden.grad.abs().sum(1) > 0 if hidden.grad is not None else torch.zeros(tokens, dtype=torch.bool)
    own = touched[4:6]
    require(own.any(), f"{where}: the gradient of the sequence's tokens is missing or zero")
    require(not touched[:4].any() and not touched[6:].any(), f"{where}: reads the tokens of other sequences")
    first = own.tolist() == [True, False]
    require(pooling.first_only == first, f"{where}: `first_only` is {pooling.first_only}, but it reads {own.tolist()}")
    padded = torch.zeros(len(LENGTHS), max(LENGTHS), SHAPE.width)
    mask = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.long)
    for row, states in enumerate(hidden.detach().split(LENGTHS)):
        padded[row, : len(states)] = states
        mask[row, : len(states)] = 1
    same = pooling.padded(padded, mask)
    same = same[mask.bool()] if pooling.keeps_tokens else same
    require_close(same, vectors, f"{where}: `padded` and `forward` return different vectors")
