"""Base classes of gradient surgery: combining per-task gradients on the shared body into one gradient."""

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor

from weft.foundation.components import Component

GramianWeighting = Callable[[Tensor], Tensor]
"""Gramian [m, m] of the tasks' gradients -> combination weights [m]; the update follows `sum_i w_i g_i`."""


class Surgery:
    """A TorchJD weighting. It needs only the Gramian, so it costs m gradients and m (m + 1) / 2 dot products.

    A window with one task is not changed. Randomized methods use torch's global generator, which the step seeds for
    each window. The Gramian is divided by its trace first: the weights do not depend on the scale of the gradients, but
    some solvers have an absolute tolerance (for a trace below 1e-4, CAGrad returns zeros and UPGrad the mean).
    """

    def __init__(self, weighting: GramianWeighting) -> None:
        self.weighting = weighting

    def __call__(self, gramian: Tensor) -> Tensor:
        if len(gramian) == 1 or not gramian.any():  # nothing to combine
            return gramian.new_ones(len(gramian))
        exact = gramian.double()
        return self.weighting(exact / exact.trace()).to(gramian)


class SurgeryOptions(Component):
    """Base class of all surgery configs."""

    @abstractmethod
    def build(self) -> Surgery | None:
        """Build the surgery; None only for `none`, which sums the gradients."""
