"""How the tasks' gradients on the shared body become one."""

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor

from weft.foundation.components import Component

GramianWeighting = Callable[[Tensor], Tensor]
"""Gramian [m, m] of the tasks' gradients -> combination weights [m]; the update follows `sum_i w_i g_i`."""


class Surgery:
    """A weighting of TorchJD. The Gramian is all it needs, so it costs m gradients and m (m + 1) / 2 dot products.

    A window with one task passes unchanged. Methods that draw use torch's global generator, which the step has set
    from the window's seed. The Gramian is divided by its trace first: the weights of `c` times the gradients are the
    weights of the gradients, but some solvers have an absolute tolerance (CAGrad returns zeros and UPGrad the mean for
    a trace below 1e-4).
    """

    def __init__(self, weighting: GramianWeighting) -> None:
        self.weighting = weighting

    def __call__(self, gramian: Tensor) -> Tensor:
        if len(gramian) == 1 or not gramian.any():  # nothing to combine
            return gramian.new_ones(len(gramian))
        exact = gramian.double()
        return self.weighting(exact / exact.trace()).to(gramian)


class SurgeryOptions(Component):
    """The base of all config classes of surgeries."""

    @abstractmethod
    def build(self) -> Surgery | None:
        """The surgery; None only for `none`, which leaves gradients as they are."""
