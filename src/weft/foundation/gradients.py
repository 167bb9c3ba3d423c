"""Which gradients a forward pass is for: of everything that is trained, or of its inputs only."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OF_WEIGHTS = ContextVar("of_weights", default=True)


@contextmanager
def of_inputs_only() -> Iterator[None]:
    """Run passes whose gradients of weights nobody asks for.

    `torch.autograd.grad(loss, inputs)` skips them by itself, except in functions with a backward pass of their own.
    """
    token = _OF_WEIGHTS.set(False)
    try:
        yield
    finally:
        _OF_WEIGHTS.reset(token)


def needs_weights() -> bool:
    """Whether a backward pass may ask for the gradients of weights."""
    return _OF_WEIGHTS.get()
