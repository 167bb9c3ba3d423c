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


def principal_plane(vectors: NDArray[np.floating]) -> Plane:
    """The plane in which the vectors [n, width] vary most.

    The sign of a direction is free: its largest entry is positive.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    total = float(variances.sum())
    chosen = directions[:, ::-1][:, :2]
    chosen = chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    shares = [max(float(v), 0.0) / total if total > 0 else 0.0 for v in variances[::-1][:2]]
    return Plane(centred @ chosen, (shares[0], shares[1]))
