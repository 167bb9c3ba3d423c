"""Vectors on paper: their two principal components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plane:
    points: NDArray[np.float64]
    """[n, 2] each row's place"""
    explained: tuple[float, float]
    """share of the vectors' variance along each of the two directions"""


@dataclass(frozen=True)
class Axes:
    """Where a plane lies among vectors [n, width]."""

    centre: NDArray[np.float64]
    directions: NDArray[np.float64]
    """[width, 2]"""
    explained: tuple[float, float]

    def points(self, vectors: NDArray[np.floating]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = (vectors.astype(np.float64) - self.centre) @ self.directions
        return found


def principal_axes(vectors: NDArray[np.floating]) -> Axes:
    """The plane in which the vectors [n, width] vary most.

    The sign of a direction is free: its largest entry is positive.
    """
    centre = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors.astype(np.float64) - centre
    variances, directions = np.linalg.eigh(centred.T @ centred)
    total = float(variances.sum())
    chosen = directions[:, ::-1][:, :2]
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    shares = [max(float(v), 0.0) / total if total > 0 else 0.0 for v in variances[::-1][:2]]
    return Axes(centre, chosen, (shares[0], shares[1]))
