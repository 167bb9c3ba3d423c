"""The contract of a head."""

import torch
from torch import Tensor, nn

from weft.foundation.errors import UserError
from weft.foundation.randomness import seeded
from weft.nn.heads.base import Head, HeadOptions, HeadShape
from weft.testing.configs import check_config, require

WIDTH, ROWS = 6, 5


def check_head(config: HeadOptions) -> None:
    """Check output shape, bounds, gradients and saved state of a head.

    For one vector and for two, the config must build a head or raise a UserError that names the key.
    """
    check_config(config)
    built = 0
    for pair in (True, False):
        for outputs in (1, 4):
            shape = HeadShape(WIDTH, pair=pair, outputs=outputs, task="task")
            try:
                heads = [_drawn(config, shape) for _ in range(2)]
            except UserError as error:
                named = str(error).startswith("tasks.task.head: ")
                require(named, f"the error must name the key tasks.TASK.head: {error}")
                continue
            built += 1
            _check_output(heads[0], shape, config)
            _check_saving(heads[0], heads[1], shape)
    require(built > 0, f"{type(config).__name__}: rejects every shape")


def _drawn(config: HeadOptions, shape: HeadShape) -> Head:
    with seeded(4, "head"):
        return config.build(shape)


def _vectors(shape: HeadShape) -> tuple[Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, ROWS, WIDTH, generator=generator).unbind()
    return first.requires_grad_(), second.requires_grad_() if shape.pair else None


def _check_output(head: Head, shape: HeadShape, config: HeadOptions) -> None:
    where = f"{type(head).__name__} for {'two vectors' if shape.pair else 'one vector'}"
    first, second = _vectors(shape)
    output = head(first, second)
    found, expected = list(output.shape), [ROWS, 2, WIDTH] if config.gives_vectors else [ROWS, shape.outputs]
    require(found == expected, f"{where}: returns shape {found}, expected {expected}")
    require(head.outputs == shape.outputs, f"{where}: `outputs` is {head.outputs}, expected {shape.outputs}")
    if config.bounds is not None:
        low, high = config.bounds
        require(
            ((output >= low) & (output <= high)).all(), f"{where}: returns values outside of its bounds {low}..{high}"
        )
    output.square().sum().backward()
    for number, side in enumerate(side for side in (first, second) if side is not None):
        gives = side.grad is not None and side.grad.abs().sum() > 0
        require(gives, f"{where}: the gradient of vector {number + 1} is missing or zero")


def _check_saving(one: Head, other: Head, shape: HeadShape) -> None:
    where = type(one).__name__
    first, second = _vectors(shape)
    require(torch.equal(one(first, second), other(first, second)), f"{where}: equal seeds build different heads")
    for parameter in other.parameters():
        nn.init.normal_(parameter)
    other.load_state_dict(one.state_dict())
    same = torch.equal(one(first, second), other(first, second))
    require(same, f"{where}: outputs differ after the state was saved and loaded")
