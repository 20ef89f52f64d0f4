"""Theorem 4.1 for a fixed horizon: half width = scale · std / √ridge, scale = C1·β + C2.

``TheoremWidth`` recomputes the bound as data come; these constants hold from the first step to the
last, which is what section 5 builds on. ``RidgeWidth(scale(...))`` has these intervals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.studies.theory.spectrum import RIDGE_HINT, Spectrum, counts


def confidence(failure_probability: float) -> float:
    """Return the paper's β: one arm's intervals fail with probability e^(−β²).

    Parameters
    ----------
    failure_probability
        Above 0 and below 1, for one arm.

    Examples
    --------
    >>> round(cg.theory.confidence(0.05), 2)
    1.73
    """
    return math.sqrt(-math.log(checks.fraction("failure_probability", failure_probability)))


def scale_slope(noise: float) -> float:
    """Return the paper's C1 = √2 · noise: how fast the scale grows with the confidence β.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the noise.

    Examples
    --------
    >>> round(cg.theory.scale_slope(0.1), 3)
    0.141
    """
    return math.sqrt(2.0) * checks.at_least("noise", noise, 0, "a standard deviation")


def scale_offset(noise: float, norm: float, ridge: float, information_gain: Any) -> FloatArray:
    """Return the paper's C2 = noise · √(ln det(I + K/ridge)) + √ridge · norm.

    The logarithm is the sum of ln(1 + σ̂²(x)/ridge) over *all* the arm's own observations, σ̂ being
    the one before each. The paper's text starts the sum at the second and its appendix drops the
    square; both are errors.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the noise.
    norm
        Bound on the arm's norm in the kernel's space.
    ridge
        Regularisation.
    information_gain
        ½ ln det(I + K/ridge) at the horizon, or a bound on it; a number or an array.

    Examples
    --------
    >>> cg.theory.scale_offset(noise=0.1, norm=1.0, ridge=0.1, information_gain=[1.0, 5.0]).round(3)
    array([0.458, 0.632])
    """
    rho = checks.at_least("noise", noise, 0, "a standard deviation")
    lambda_ = checks.positive("ridge", ridge, RIDGE_HINT)
    bound = checks.positive("norm", norm, "it bounds every arm's norm in the kernel space")
    gain = counts("information_gain", information_gain)
    return np.asarray(rho * np.sqrt(2.0 * gain) + math.sqrt(lambda_) * bound)


def scale(
    confidence: float, noise: float, norm: float, ridge: float, information_gain: Any
) -> FloatArray:
    """Return the paper's α = C1·β + C2.

    Parameters
    ----------
    confidence
        The paper's β.
    noise, norm, ridge, information_gain
        As for ``scale_offset``.

    Examples
    --------
    >>> cg.theory.scale(1.73, noise=0.1, norm=1.0, ridge=0.1, information_gain=[1.0, 5.0]).round(3)
    array([0.702, 0.877])
    """
    beta = checks.at_least("confidence", confidence, 0)
    offset = scale_offset(noise, norm, ridge, information_gain)
    return np.asarray(scale_slope(noise) * beta + offset)


def information_gain_bound(pulls: Any, ridge: float, spectrum: Spectrum) -> FloatArray:
    """Return a bound on ½ ln det(I + K/ridge), which grows with the logarithm of the pulls.

    With d* eigenvalues that sum to at most pulls · kernel_bound, the determinant is largest when
    they are equal: ½ d* ln(1 + pulls · kernel_bound / (d* · ridge)). The appendix has
    (1 + T/λ)/d* in the logarithm, which is too small: at T = 0 it is negative.

    Parameters
    ----------
    pulls
        Observations of the arm; a number or an array.
    ridge
        Regularisation.
    spectrum
        Where the contexts' features lie.

    Examples
    --------
    >>> cg.theory.information_gain_bound([0, 100], 0.1, spectrum).round(2)
    array([0.  , 8.72])
    """
    lambda_, d = checks.positive("ridge", ridge, RIDGE_HINT), spectrum.effective_dimension
    trace = counts("pulls", pulls) * spectrum.kernel_bound
    return np.asarray(0.5 * d * np.log1p(trace / (d * lambda_)))


def norm_estimate(
    contexts: Any,
    rewards: Any,
    *,
    kernel: Kernel,
    ridge: float,
    noise: float,
    prior_mean: float = 0.0,
) -> float:
    """Return a heuristic estimate of one arm's norm, for ``norm`` of widths with a guarantee.

    With rewards y minus the prior mean and R = (K + ridge·I)⁻¹, the squared norm of the posterior
    mean is yᵀR·K·R·y. The estimate is the root of that minus what independent noise adds to it on
    average, noise²·trace(R·K·R), and 0 if the difference is negative. On average the difference is
    fᵀR·K·R·f, f the expected rewards: at most the squared norm, which it approaches from below as
    contexts fill the space. (yᵀR·y minus noise²·trace(R) is closer on average, but it has the noise
    of all rewards in it and not only of the directions that the kernel sees.) So the estimate is
    usually too low, more so with few rewards: no bound follows from it, and a width that uses it
    guarantees nothing, whatever its ``probability`` says. Take more than the largest estimate over
    arms, such as twice as much.

    .. versionadded:: 0.3

    Parameters
    ----------
    contexts
        Contexts at which the arm was tried, shape (n, d).
    rewards
        Its rewards.
    kernel
        Similarity of contexts.
    ridge
        Regularisation.
    noise
        Standard deviation of the rewards' noise.
    prior_mean
        What is subtracted from the rewards.

    Examples
    --------
    >>> from contextgap import Linear
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> round(norm_estimate(x, [2.0, 4.1, 5.9, 8.0], kernel=Linear(), ridge=0.01, noise=0.1), 2)
    2.0
    """
    ridge = checks.positive("ridge", ridge, RIDGE_HINT)
    noise = checks.at_least("noise", noise, 0, "a standard deviation")
    y = checks.finite_vector("rewards", rewards) - checks.real("prior_mean", prior_mean)
    points = np.asarray(contexts, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError("contexts must be a table (2-D) of finite numbers")
    checks.same_length(contexts=len(points), rewards=len(y))
    values, vectors = np.linalg.eigh(kernel(points, points))
    values = np.maximum(values, 0.0)
    share = values / (values + ridge) ** 2  # eigenvalues of R·K·R
    squared = float(share @ (vectors.T @ y) ** 2 - noise**2 * share.sum())
    return math.sqrt(max(squared, 0.0))
