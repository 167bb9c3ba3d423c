"""Projection of vectors on their first two principal components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plane:
    """Vectors projected on two principal components."""

    points: NDArray[np.float64]
    """[n, 2] coordinates of each row"""
    explained: tuple[float, float]
    """explained variance ratio of each component"""


@dataclass(frozen=True)
class Axes:
    """The first two principal components of vectors [n, width]."""

    centre: NDArray[np.float64]
    """[width] mean of the vectors"""
    directions: NDArray[np.float64]
    """[width, 2] the components"""
    explained: tuple[float, float]
    """explained variance ratio of each component"""

    def points(self, vectors: NDArray[np.floating]) -> NDArray[np.float64]:
        """[n, 2] project vectors on the components."""
        found: NDArray[np.float64] = (vectors.astype(np.float64) - self.centre) @ self.directions
        return found


def principal_axes(vectors: NDArray[np.floating]) -> Axes:
    """Compute the first two principal components of vectors [n, width].

    The sign of a component is arbitrary; it is chosen so that the entry with the largest magnitude is positive.
    """
    centre = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors.astype(np.float64) - centre
    variances, directions = np.linalg.eigh(centred.T @ centred)
    total = float(variances.sum())
    chosen = directions[:, ::-1][:, :2]
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    shares = [max(float(v), 0.0) / total if total > 0 else 0.0 for v in variances[::-1][:2]]
    return Axes(centre, chosen, (shares[0], shares[1]))
