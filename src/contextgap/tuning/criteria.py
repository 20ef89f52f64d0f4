"""Two criteria for how well settings explain the observations: evidence and leave-one-out.

An arm's rewards y have covariance s²·C, C = K + ratio·I, where s² is the reward scale and ratio the
ridge in units of it, and a mean m that all arms share. With a = C⁻¹(y − m) and c the diagonal of
C⁻¹, and N observations of all arms together (Rasmussen and Williams, 2006, sections 5.4.1 and
5.4.2), the losses to minimise are

    evidence         ½ Σ ln det C + ½ N ln s²        with s² = Σ aᵀ(y − m) / N
    leave one out   −½ Σ ln c_i   + ½ N ln s²        with s² = Σ a_i²/c_i / N

m and s² are at their optimum in closed form, so derivatives with respect to anything in C are those
at fixed m and s²: the inner product of dC with the matrices that are returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpotri

from contextgap.base.arrays import FloatArray


class Score(NamedTuple):
    """A criterion's verdict on settings, with the mean and reward scale s² that are best for them.

    ``loss`` is to be minimised, in nats for all observations together. ``slopes`` holds, for every
    arm, the matrix whose inner product with dC is the change of the loss; ``errors`` holds every
    arm's leave-one-out residuals.
    """

    loss: float
    prior_mean: float
    reward_scale: float
    slopes: list[FloatArray]
    errors: list[FloatArray]


Criterion = Callable[[Sequence[FloatArray], Sequence[FloatArray], float, float], Score | None]


def evidence(
    covariances: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    guess: float,
    trust: float,
) -> Score | None:
    """Return the negative log likelihood of the rewards but for a constant, from C and y per arm.

    ``guess`` is the reward scale before anything was seen, and ``trust`` how many observations that
    is worth. The result is None if a covariance is not positive definite.
    """
    inverses = _inverses(covariances)
    if inverses is None:
        return None
    ones = [inverse.sum(axis=1) for inverse, _ in inverses]
    weight = sum(one.sum() for one in ones)
    prior_mean = sum(one @ y for one, y in zip(ones, rewards, strict=True)) / weight
    residuals = [y - prior_mean for y in rewards]
    solved = [inv @ r for (inv, _), r in zip(inverses, residuals, strict=True)]
    total = sum(a @ r for a, r in zip(solved, residuals, strict=True))
    count = sum(map(len, rewards)) + trust
    scale = (total + trust * guess) / count
    loss = 0.5 * sum(log_det for _, log_det in inverses) + 0.5 * count * math.log(scale)
    slopes = [
        0.5 * (inverse - np.outer(a, a) / scale)
        for (inverse, _), a in zip(inverses, solved, strict=True)
    ]
    errors = [a / inverse.diagonal() for (inverse, _), a in zip(inverses, solved, strict=True)]
    return Score(loss, float(prior_mean), float(scale), slopes, errors)


def leave_one_out(
    covariances: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    guess: float,
    trust: float,
) -> Score | None:
    """Return how badly every reward is predicted by the arm's other rewards; see ``evidence``."""
    inverses = _inverses(covariances)
    if inverses is None:
        return None
    matrices = [inverse for inverse, _ in inverses]
    precisions = [inverse.diagonal() for inverse in matrices]
    plain = [inverse @ y for inverse, y in zip(matrices, rewards, strict=True)]
    ones = [inverse.sum(axis=1) for inverse in matrices]
    arms = list(zip(plain, ones, precisions, strict=True))
    weight = sum((one**2 / c).sum() for _, one, c in arms)
    prior_mean = sum((a * one / c).sum() for a, one, c in arms) / weight if weight > 0 else 0.0
    solved = [a - prior_mean * one for a, one, _ in arms]
    total = sum((a**2 / c).sum() for a, c in zip(solved, precisions, strict=True))
    count = sum(map(len, rewards)) + trust
    scale = (total + trust * guess) / count
    loss = -0.5 * sum(np.log(c).sum() for c in precisions) + 0.5 * count * math.log(scale)
    errors = [a / c for a, c in zip(solved, precisions, strict=True)]
    slopes = []
    for inverse, a, c, error in zip(matrices, solved, precisions, errors, strict=True):
        spread = 0.5 / c + 0.5 * error**2 / scale
        crossed = np.outer(inverse @ error, a)
        slopes.append((inverse * spread) @ inverse - (crossed + crossed.T) / (2 * scale))
    return Score(loss, float(prior_mean), float(scale), slopes, errors)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "loo": leave_one_out}


def _inverses(covariances: Sequence[FloatArray]) -> list[tuple[FloatArray, float]] | None:
    """Return each C⁻¹ and ln det C; None if one of them is not positive definite."""
    found = []
    for covariance in covariances:
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except LinAlgError:
            return None
        log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)  # zero above the diagonal, as factor is
        inverse += np.tril(inverse, -1).T
        found.append((inverse, log_det))
    return found
