"""Exact means, and bounds on standard deviations without a forward substitution.

A mean costs one product with weights that are kept. A decision that is the same for all standard
deviations between two bounds does not need them, and bounds are cheap: with λ_j and e_j the
eigenvalues and eigenvectors of the arm's kernel matrix K, k = k(x, X) and c_j = e_j·k,

    std² = k(x, x) − Σ c_j²/(λ_j + ridge).

With h = k(x, x) and u_j = c_j²/λ_j, the sum is that of u_j·λ_j/(λ_j + ridge), where Σ u_j ≤ h and
Σ u_j·λ_j = |k|². As t/(t + ridge) is concave, Jensen's inequality bounds it by h·|k|²/(|k|² +
ridge·h), so that

    std² ≥ h·ridge·h/(|k|² + ridge·h).

On the other side std² ≤ k(x, x) − k_i²/(k(x_i, x_i) + ridge), what the observation at x_i tells
alone. Bounds from the leading eigenvectors were closer, but took more time than they saved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.models.answers import Bounds
from contextgap.models.arm import ROUNDING, Arm

_TINY = float(np.finfo(np.float64).tiny)
# Rounding in a mean, in units of the sum of its terms' sizes.
_MEAN_ROUNDING = 1e-13


def bounds(
    kernel: Kernel,
    prior: float,
    arms: Sequence[Arm],
    points: Sequence[FloatArray],
    contexts: FloatArray,
) -> Bounds:
    """Return means and bounds for arms that were observed at these points."""
    prior_variance = kernel.diagonal(contexts)
    mean = np.full((len(contexts), len(arms)), prior)
    told, nearest = np.zeros((2, *mean.shape))
    ridge, reach = arms[0].ridge, 0.0
    for column, (arm, own) in enumerate(zip(arms, points, strict=True)):
        if not len(arm):
            continue
        values, weights = kernel(contexts, own), arm.dual(prior)
        largest = float(kernel.diagonal(own).max())
        mean[:, column] += values @ weights
        told[:, column] = np.einsum("ij,ij->i", values, values)
        nearest[:, column] = values.max(axis=1) ** 2 / (largest + ridge)
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        reach = max(reach, float(np.abs(weights).sum()) * math.sqrt(largest))
    h = prior_variance[:, None]
    spoilt = ROUNDING * (np.array([len(arm) for arm in arms]) + 1) * h
    least = h * (ridge * h / np.maximum(told + ridge * h, _TINY)) - spoilt
    most = h - nearest + spoilt
    return Bounds(
        mean,
        np.sqrt(np.maximum(least, 0.0)),
        np.sqrt(np.maximum(most, 0.0)),
        _MEAN_ROUNDING * (abs(prior) + reach * np.sqrt(prior_variance)),
    )
