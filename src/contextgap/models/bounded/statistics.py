"""What an arm's rewards say, as sums over rows: blocks of a table, or machines, just add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.bounded.dictionary import Dictionary, Whitened

_BLOCK = 2**21  # numbers of φ held at once


@dataclass(frozen=True)
class Statistics:
    """Sums over some rows of one arm, with w = 1/(ridge + δ).

    Numbers lose about one digit in sixteen for every hundredfold of rows that are added, however
    they are grouped, and the Cholesky factor of I + ``gram`` no more than that: the smallest
    eigenvalue of I + ``gram`` is at least 1.

    Parameters
    ----------
    gram
        Σ w·φφᵀ, shape (m, m).
    moments
        Σ w·φ·y and Σ w·φ, shape (2, m).
    unexplained
        Σ ln(1 + δ/ridge).
    count
        The number of rows.
    seen
        Σ φ and Σ v·φ, shape (2, m), with v an importance weight, 1 where none was given.
    weighted
        Σ v and Σ v·y.
    """

    gram: FloatArray
    moments: FloatArray
    unexplained: float
    count: int
    seen: FloatArray
    weighted: FloatArray

    @classmethod
    def of(
        cls, rows: Whitened, rewards: FloatArray, ridge: float, weights: FloatArray | None = None
    ) -> Self:
        """Return the sums over rows whose ``features`` have shape (m, rows)."""
        weight = 1.0 / (ridge + rows.residual)
        scaled = rows.features * np.sqrt(weight)
        told = np.stack([rewards * np.sqrt(weight), np.sqrt(weight)])
        unexplained = float(np.log1p(rows.residual / ridge).sum())
        ones = np.ones(len(rewards))
        both = np.stack([ones, ones if weights is None else weights])
        return cls(
            scaled @ scaled.T,
            told @ scaled.T,
            unexplained,
            len(rewards),
            both @ rows.features.T,
            both[1] @ np.stack([ones, rewards], axis=1),
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.gram + other.gram,
            self.moments + other.moments,
            self.unexplained + other.unexplained,
            self.count + other.count,
            self.seen + other.seen,
            self.weighted + other.weighted,
        )


def sums_by_arm(
    dictionary: Dictionary,
    kernel: Kernel,
    ridge: float,
    contexts: FloatArray,
    arms: IntArray,
    rewards: FloatArray,
    weights: FloatArray | None = None,
) -> dict[int, Statistics]:
    """Return the sums over each arm's rows; ``weights`` are importance weights."""
    sums: dict[int, Statistics] = {}
    for block in blocks(len(rewards), len(dictionary)):
        features, residual = dictionary.whiten(kernel, contexts[block])
        for arm in np.unique(arms[block]).tolist():
            own = np.flatnonzero(arms[block] == arm)
            part = Whitened(features[:, own], residual[own])
            given = None if weights is None else weights[block][own]
            found = Statistics.of(part, rewards[block][own], ridge, given)
            sums[arm] = sums[arm] + found if arm in sums else found
    return sums


def blocks(rows: int, points: int) -> Iterator[slice]:
    """Yield slices of rows for whose φ, of so many points, there is memory enough."""
    size = max(64, _BLOCK // max(1, points))
    for first in range(0, rows, size):
        yield slice(first, min(first + size, rows))
