"""What the original policy decides and believes at some contexts, and what is fitted to that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.policy import Policy

_BLOCK = 2000  # contexts at a time, so that memory stays bounded


class Original(NamedTuple):
    """A policy at some contexts.

    Parameters
    ----------
    contexts
        Shape (m, d).
    arm
        Indices of the arms deployed, shape (m,).
    mean, lower, upper
        What is believed of every arm, shape (m, arms).
    """

    contexts: FloatArray
    arm: IntArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, policy: Policy, contexts: FloatArray) -> Original:
        """Ask a policy.

        Parameters
        ----------
        policy
            The policy.
        contexts
            Shape (m, d).
        """
        shape = (len(contexts), len(policy.arms))
        mean, lower, upper = np.empty(shape), np.empty(shape), np.empty(shape)
        for first in range(0, len(contexts), _BLOCK):
            rows = slice(first, first + _BLOCK)
            posterior = policy._model.posterior(contexts[rows], policy._active)
            belief = Belief(posterior, policy.width)
            mean[rows], lower[rows], upper[rows] = belief.mean, belief.lower, belief.upper
        return cls(contexts, deployed_arms(policy, contexts), mean, lower, upper)


def deployed_arms(policy: Policy, contexts: FloatArray) -> IntArray:
    """Return the indices of the arms that a policy deploys.

    Parameters
    ----------
    policy
        The policy.
    contexts
        Shape (m, d).
    """
    index = {label: i for i, label in enumerate(policy.arms)}
    labels = policy.recommend(contexts)
    return np.array([index[label] for label in labels.tolist()], dtype=np.intp)


def targets(original: Original, fitted: str) -> FloatArray:
    """Return the functions of the context to fit, one per arm, whose highest is the decision.

    These are the upper bounds, or the means. Where the arm with the highest mean is not the one
    deployed, the means are moved as little as it takes: the deployed arm's is raised, and those
    above it are lowered, to the same level, and half a usual margin apart.

    Parameters
    ----------
    original
        The policy's decisions and beliefs.
    fitted
        ``"mean"`` or ``"upper"``.
    """
    if fitted == "upper":
        return original.upper
    moved = original.mean.copy()
    apart = 0.25 * usual_margin(original.mean)
    for row in np.flatnonzero(original.mean.argmax(axis=1) != original.arm):
        means, arm = moved[row], original.arm[row]
        level = _common_level(means[arm], np.sort(means[means > means[arm]])[::-1])
        np.minimum(means, level - apart, out=means)
        means[arm] = level + apart
    return moved


def margins(values: FloatArray, arm: IntArray) -> FloatArray:
    """Return by how much every arm is below the deployed one.

    Parameters
    ----------
    values
        A function per arm, shape (m, arms).
    arm
        The arms deployed.
    """
    return np.asarray(np.take_along_axis(values, arm[:, None], axis=1) - values)


def usual_margin(values: FloatArray) -> float:
    """Return the median difference between the best two arms; 1 if there is none to speak of.

    Parameters
    ----------
    values
        A function per arm, shape (m, arms).
    """
    if values.shape[1] < 2 or not len(values):
        return 1.0
    best = np.sort(values, axis=1)[:, -2:]
    difference = best[:, 1] - best[:, 0]
    # Where most contexts are ties, the median says nothing about those that are not.
    return float(np.median(difference)) or float(difference.max()) or 1.0


def _common_level(own: float, above: FloatArray) -> float:
    """The level at which raising one number and lowering those above it costs least in squares."""
    total, count = own, 1
    for value in above:
        if value <= total / count:
            break
        total, count = total + value, count + 1
    return float(total / count)
