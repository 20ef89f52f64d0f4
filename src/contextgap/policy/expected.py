"""The expected regret of picks, where beliefs about arms are normal distributions.

Arms are taken as independent but for what all of them share: a part of their rewards that is the
same for all has no influence on which is best, and is left out.
"""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.beliefs.belief import Belief

_REACH = np.arange(-8.0, 9.0)  # standard deviations; what is beyond does not count in a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def expected_regret(mean: FloatArray, std: FloatArray, picks: IntArray) -> FloatArray:
    """Return E[highest reward of any arm] − E[reward of the pick], for each row of beliefs."""
    regrets = np.full(len(picks), np.inf)  # what cannot be computed is not certified
    for row, pick in enumerate(picks):
        relative = mean[row] - mean[row, pick]
        if np.isfinite(relative).all() and np.isfinite(std[row]).all():
            regrets[row] = max(_expected_highest(relative, std[row]), relative.max(), 0.0)
    return regrets


def own_std(belief: Belief) -> FloatArray:
    """Return the standard deviations of what arms do not share.

    The common variance is the average covariance of two arms: then the average variance of a
    difference is right.
    """
    arms = belief.mean.shape[-1]
    if belief.covariance is None or arms == 1:
        return belief.std
    variance = np.square(belief.std)
    pairs = belief.covariance.sum(axis=(-2, -1)) - variance.sum(axis=-1)
    common = np.minimum(pairs / (arms * (arms - 1)), variance.min(axis=-1))
    return np.asarray(np.sqrt(np.maximum(variance - common[:, None], 0.0)))


def _expected_highest(mean: FloatArray, std: FloatArray) -> float:
    """Return E[highest] = end − ∫ P(all are below z) dz, up to an end that none exceeds.

    The integral is a sum over short intervals: within reach of an arm, none is longer than the
    arm's standard deviation.
    """
    from scipy.special import ndtr  # slow to load, and most policies do without

    edges = np.unique(mean + std * _REACH[:, None])
    edges = edges[edges >= (mean + std * _REACH[0]).max()]  # below, P is zero
    half = np.diff(edges) / 2
    z = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    with np.errstate(over="ignore"):  # arms that are known exactly
        all_below = ndtr((z[..., None] - mean) / np.maximum(std, np.finfo(float).tiny)).prod(-1)
    return float(edges[-1] - half @ (all_below @ _WEIGHTS))
