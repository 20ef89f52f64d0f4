"""Contexts for which assumption A III holds with known constants."""

from __future__ import annotations

import numpy as np

from contextgap.studies.theory import Spectrum

DIMENSION = 2
# Directions of the unit circle have E[xxᵀ] = I/2, so the linear kernel has floor 1/2.
CIRCLE = Spectrum(0.5, DIMENSION)


def circle(size, rng, drift=0.0):
    """Unit vectors; with drift, the next is the last turned, plus a full set of right angles."""
    angles = rng.uniform(0, 2 * np.pi, size=size)
    if drift:
        # Given the past, x is one of four directions at right angles, so E[xxᵀ] = I/2 all the same.
        angles = np.arange(size) * drift + rng.integers(4, size=size) * np.pi / 2
    return np.column_stack([np.cos(angles), np.sin(angles)])


def smallest_eigenvalues(contexts):
    """Of S_t for t = 1, 2, ..., in two dimensions."""
    a, b = (np.cumsum(contexts[:, i] ** 2) for i in range(2))
    c = np.cumsum(contexts[:, 0] * contexts[:, 1])
    return (a + b) / 2 - np.sqrt((a - b) ** 2 / 4 + c**2)
