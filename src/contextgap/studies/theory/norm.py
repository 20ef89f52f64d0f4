"""A guess at an arm's norm in the kernel's space, from its rewards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.kernels import Kernel
from contextgap.studies.theory.arguments import RIDGE_HINT


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
