"""How far a policy is from another, as a quadratic form in the weights of its points.

With e_a the error of arm a's function, what counts is

    Σ_x Σ_b ω_b(x)·(e_d(x) − e_b(x))²  +  τ Σ_x Σ_a e_a(x)²        over reference contexts x
      + μ (Σ_a |e_a − ē|² + τ Σ_a |e_a|²)                            in the kernel's norm

where d is the arm deployed at x. Errors that all arms share change no decision and count little
(τ): one function fewer to represent. ω is large where an arm is close to the deployed one. The
norm keeps functions together away from the reference contexts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.compression.original import margins, usual_margin
from contextgap.kernels import Kernel

_LEVELS = 0.003  # τ
_NORM = 2e-3  # μ per reference context and unit of prior variance
_CLOSE = 2.0  # arms up to so many usual margins below the deployed one are close to it


class Equations(NamedTuple):
    """The normal equations ``matrix @ weights = rhs`` of all candidates.

    Parameters
    ----------
    matrix
        Shape (n, n).
    rhs
        Shape (n,).
    arm
        The arm of every candidate, ascending.
    contexts
        Their contexts, shape (n, d).
    """

    matrix: FloatArray
    rhs: FloatArray
    arm: IntArray
    contexts: FloatArray


def normal_equations(
    kernel: Kernel,
    contexts: FloatArray,
    wanted: FloatArray,
    deployed: IntArray,
    candidates: FloatArray,
    arm: IntArray,
    wanted_there: FloatArray,
) -> Equations:
    """Return the normal equations.

    Parameters
    ----------
    kernel
        Similarity of contexts.
    contexts
        Reference contexts, shape (m, d).
    wanted
        The functions to fit at them less the prior mean, shape (m, arms).
    deployed
        The arms deployed at them.
    candidates
        Contexts that may become points, shape (n, d).
    arm
        The arm whose point each may become, ascending.
    wanted_there
        The functions to fit at them less the prior mean, shape (n, arms).
    """
    arms = wanted.shape[1]
    importance = _importance(wanted, deployed)
    norm = _NORM * len(contexts) * float(kernel.diagonal(contexts).mean())
    in_norm = norm * ((1 + _LEVELS) * np.eye(arms) - 1 / arms)
    own = [np.flatnonzero(arm == a) for a in range(arms)]
    values = [kernel(contexts, candidates[places]) for places in own]
    matrix, rhs = np.empty((len(arm), len(arm))), np.empty(len(arm))
    pulled = np.einsum("xab,xb->xa", importance, wanted)
    for a, left in enumerate(own):
        rhs[left] = values[a].T @ pulled[:, a] + wanted_there[left] @ in_norm[a]
        for b, right in enumerate(own[a:], start=a):
            between = importance[:, a, b]
            rows = np.flatnonzero(between)  # most contexts concern few pairs of arms
            block = values[a][rows].T @ (between[rows, None] * values[b][rows])
            block += in_norm[a, b] * kernel(candidates[left], candidates[right])
            matrix[np.ix_(left, right)] = block
            matrix[np.ix_(right, left)] = block.T
    return Equations(matrix, rhs, arm, candidates)


def _importance(wanted: FloatArray, deployed: IntArray) -> FloatArray:
    """The quadratic form in the arms' errors at each context, shape (m, arms, arms)."""
    rows, arms = np.arange(len(wanted)), wanted.shape[1]
    far = _CLOSE * usual_margin(wanted)
    close = far**2 / (far**2 + margins(wanted, deployed) ** 2)
    close[rows, deployed] = 0.0
    form = np.zeros((len(wanted), arms, arms))
    for b in range(arms):
        form[rows, b, b] += close[:, b] + _LEVELS
        form[rows, deployed, b] -= close[:, b]
        form[rows, b, deployed] -= close[:, b]
    form[rows, deployed, deployed] += close.sum(axis=1)
    return form
