"""UPGrad: projects each task gradient onto the dual cone of all task gradients."""

from typing import Literal

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor
from torchjd.aggregation import UPGradWeighting
from torchjd.linalg import DualConeProjector

from weft.surgery.base import Surgery, SurgeryOptions

RIDGE = 1e-4
"""added to the diagonal of the Gramian, as TorchJD does: it makes the solution unique"""


class LeastSquaresProjector(DualConeProjector):
    """Find the weights `w >= u` that minimize `w' G w`, for each row u.

    With `G = L L'` and `w = u + x` this is non-negative least squares, `min_{x >= 0} |L' x + L' u|`, which SciPy solves
    exactly (active-set method of Lawson and Hanson). TorchJD's projector uses quadprog, which is under the GPL.
    """

    def __call__(self, U: Tensor, G: Tensor) -> Tensor:  # noqa: N803 -- the interface's names
        root = np.linalg.cholesky(G.detach().cpu().numpy() + RIDGE * np.eye(len(G))).T
        rows = U.detach().cpu().numpy()
        solved = [row + nnls(root, -root @ row)[0] for row in rows]
        return torch.as_tensor(np.stack(solved), device=G.device, dtype=G.dtype)


class UPGradConfig(SurgeryOptions):
    """Project each g_i onto the dual cone, the vectors that conflict with no task gradient; the update is their *mean*.

    Quinton and Rey, "Jacobian Descent for Multi-Objective Optimization", 2024.
    """

    name: Literal["upgrad"] = "upgrad"

    def build(self) -> Surgery:
        return Surgery(UPGradWeighting(projector=LeastSquaresProjector()))
