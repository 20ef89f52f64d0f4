"""What hyperparameters are judged by: evidence or leave-one-out, on a sample of the observations.

An arm's rewards y have covariance s²·C, C = K + ratio·I, where s² is the reward scale and ratio the
ridge in units of it, and a mean m that all arms share. With a = C⁻¹(y − m) and c the diagonal of
C⁻¹, and N observations of all arms together (Rasmussen and Williams, 2006, sections 5.4.1 and
5.4.2), the losses to minimise are

    evidence         ½ Σ ln det C + ½ N ln s²        with s² = Σ aᵀ(y − m) / N
    leave one out   −½ Σ ln c_i   + ½ N ln s²        with s² = Σ a_i²/c_i / N

m and s² are at their optimum in closed form, so derivatives with respect to anything in C are those
at fixed m and s²: the inner product of dC with the matrices that are returned. Instead of s² stands
s² over a first guess of it, so that losses do not depend on the unit of the rewards.

Both count squared errors. Where a few rewards carry most of the variance, as in payments of which
most are zero, bandwidths would follow those few. They are learnt from rewards that are clipped to
limits; noise, reward scale and mean, which guarantees rest on, from the unclipped rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from contextgap.base.arrays import FloatArray, IntArray, evenly

# A criterion costs as much as factorising every arm's covariance; this many operations, those of
# two arms with 600 observations each, are some seconds for a whole search.
MOST_OPERATIONS = 2 * 600**3
Data: TypeAlias = tuple[list[FloatArray], list[FloatArray]]  # contexts and rewards, by arm
Limits: TypeAlias = tuple[float, float]
_FAR = 3.0  # standard deviations from the mean
# Rounds in which limits are found for what lies within the last ones: so many, and up to so many
# more while hardly any reward is beyond them, since a single one may be far beyond imagination.
_TIMES, _MORE, _FEW = 3, 50, 0.01
# The share of the variance that far rewards carry, from which they are too heavy: 0.03 of normally
# distributed rewards, 0.3 of exponential ones, 0.6 of log-normal ones with deviation 1.
_HEAVY = 0.5


class Detail(NamedTuple):
    """What takes longer than the loss itself."""

    slopes: list[FloatArray]  # by arm, the matrix whose inner product with dC changes the loss
    errors: list[FloatArray]  # every arm's leave-one-out residuals


class Score(NamedTuple):
    """A criterion's verdict on settings, with the mean and reward scale s² best for them."""

    loss: float  # to be minimised, in nats for all observations together
    prior_mean: float
    reward_scale: float
    detail: Callable[[], Detail]  # may be called once


Criterion = Callable[[Sequence[FloatArray], Sequence[FloatArray], float, float], Score | None]


def evidence(
    covariances: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    guess: float,
    trust: float,
) -> Score | None:
    """Return the negative log likelihood of the rewards but for a constant, from C and y per arm.

    ``guess`` is the reward scale before anything was seen, and ``trust`` how many observations that
    is worth. The covariances are overwritten. The result is None if one is not positive definite.
    """
    factors = _factors(covariances)
    if factors is None:
        return None
    arms = list(zip(factors, rewards, strict=True))
    both = [dpotrs(factor, np.array([y, np.ones(len(y))]).T, lower=1)[0].T for factor, y in arms]
    prior_mean = sum(one @ y for (_, one), y in zip(both, rewards, strict=True))
    prior_mean /= sum(one.sum() for _, one in both)
    solved = [plain - prior_mean * one for plain, one in both]
    total = sum(a @ (y - prior_mean) for a, y in zip(solved, rewards, strict=True))
    count = sum(map(len, rewards)) + trust
    scale = (max(total, 0.0) + trust * guess) / count  # rounding may leave less than nothing
    log_det = sum(2.0 * float(np.log(factor.diagonal()).sum()) for factor in factors)
    loss = 0.5 * log_det + 0.5 * count * math.log(scale / guess)

    def detail() -> Detail:
        slopes, errors = [], []
        for factor, a in zip(factors, solved, strict=True):
            half, _ = dpotri(factor, lower=1, overwrite_c=1)
            errors.append(a / half.diagonal())
            half = dsyr(-1.0 / scale, a, lower=1, a=half, overwrite_a=1)
            slopes.append(_mirrored(half, 0.5))
        return Detail(slopes, errors)

    return Score(loss, float(prior_mean), float(scale), detail)


def leave_one_out(
    covariances: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    guess: float,
    trust: float,
) -> Score | None:
    """Return how badly every reward is predicted by the arm's other rewards; see ``evidence``."""
    factors = _factors(covariances)
    if factors is None:
        return None
    matrices = [_mirrored(dpotri(each, lower=1, overwrite_c=1)[0]) for each in factors]
    precisions = [inverse.diagonal() for inverse in matrices]
    plain = [inverse @ y for inverse, y in zip(matrices, rewards, strict=True)]
    ones = [inverse.sum(axis=1) for inverse in matrices]
    arms = list(zip(plain, ones, precisions, strict=True))
    weight = sum((one**2 / c).sum() for _, one, c in arms)
    prior_mean = sum((a * one / c).sum() for a, one, c in arms) / weight if weight > 0 else 0.0
    solved = [a - prior_mean * one for a, one, _ in arms]
    total = sum((a**2 / c).sum() for a, c in zip(solved, precisions, strict=True))
    count = sum(map(len, rewards)) + trust
    scale = (max(total, 0.0) + trust * guess) / count  # rounding may leave less than nothing
    loss = -0.5 * sum(np.log(c).sum() for c in precisions) + 0.5 * count * math.log(scale / guess)

    def detail() -> Detail:
        errors = [a / c for a, c in zip(solved, precisions, strict=True)]
        slopes = []
        for inverse, a, c, error in zip(matrices, solved, precisions, errors, strict=True):
            spread = 0.5 / c + 0.5 * error**2 / scale
            crossed = np.outer(inverse @ error, a)
            slopes.append((inverse * spread) @ inverse - (crossed + crossed.T) / (2 * scale))
        return Detail(slopes, errors)

    return Score(loss, float(prior_mean), float(scale), detail)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "loo": leave_one_out}


def _factors(covariances: Sequence[FloatArray]) -> list[FloatArray] | None:
    """Return each C's Cholesky factor, zero above the diagonal; None if one has none."""
    factors = []
    for covariance in covariances:
        # C is its own transpose, and that is in the order in which LAPACK works in place.
        factor, failed = dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        factors.append(factor)
    return factors


def _mirrored(lower: FloatArray, times: float = 1.0) -> FloatArray:
    """Return times the symmetric matrix whose lower half is given, with zeros above."""
    whole = lower + lower.T
    whole.flat[:: len(whole) + 1] *= 0.5  # the diagonal
    if times != 1.0:
        whole *= times
    return whole


def part_of(data: Data, operations: float, power: int = 3) -> Data:
    """Return each arm's observations, thinned out to the number that may be used."""
    contexts, rewards = data
    places = places_used(contexts, rewards, operations, power)
    return (
        [x[own] for x, own in zip(contexts, places, strict=True)],
        [y[own] for y, own in zip(rewards, places, strict=True)],
    )


def places_used(
    contexts: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    operations: float = MOST_OPERATIONS,
    power: int = 3,
) -> list[IntArray]:
    """Return, for every arm, the places of the observations to use, evenly spread over time."""
    # Those of an arm with n of them cost n to the power given; all together cost at most
    # ``operations``.
    #
    # Repeated observations at one context count once if they always agree to the last digit: their
    # noise does not change between visits, so it would be mistaken for no noise, and the function
    # for noise. If any two disagree, every visit has noise of its own and counts.
    places = [np.arange(len(y)) for y in rewards]
    firsts = [_first_visits(x, y) for x, y in zip(contexts, rewards, strict=True)]
    if all(first is not None for first in firsts):
        places = [first for first in firsts if first is not None]
    most = _most_each([len(own) for own in places], operations, power)
    return [evenly(own, most) for own in places]


def repetitions(contexts: FloatArray, rewards: FloatArray) -> IntArray | None:
    """Return how often each observation's context was visited; None if any two visits disagree."""
    if not len(rewards):
        return np.empty(0, dtype=np.intp)
    _, group, counts = np.unique(contexts, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    highest, lowest = np.full(len(counts), -np.inf), np.full(len(counts), np.inf)
    np.maximum.at(highest, group, rewards)
    np.minimum.at(lowest, group, rewards)
    if (highest != lowest).any():
        return None
    return np.asarray(counts[group])


def _first_visits(contexts: FloatArray, rewards: FloatArray) -> IntArray | None:
    """Return the places of every context's first visit; None if any two visits disagree."""
    if repetitions(contexts, rewards) is None:
        return None
    if not len(rewards):
        return np.empty(0, dtype=np.intp)
    return np.asarray(np.sort(np.unique(contexts, axis=0, return_index=True)[1]))


def _most_each(counts: Sequence[int], operations: float, power: int = 3) -> int:
    """Return how many observations each arm may have, if n of them cost n to a power."""
    ordered = np.sort(np.asarray(counts, dtype=np.float64))
    below = np.concatenate([[0.0], np.cumsum(ordered**power)[:-1]])
    left = np.arange(len(ordered), 0, -1)
    allowed = (np.maximum(operations - below, 0.0) / left) ** (1 / power) + 1e-9
    fits = np.flatnonzero(allowed < ordered)
    return int(allowed[fits[0]]) if len(fits) else int(ordered[-1])


def heavy_tails(rewards: Sequence[FloatArray]) -> Limits | None:
    """Return limits for rewards of which a few carry most of the variance; None for others."""
    everything = np.concatenate(rewards)
    # Of two values, limits would only change the unit.
    if not _is_heavy(everything) or len(np.unique(everything)) < 3:
        return None
    within = everything
    for times in range(_TIMES + _MORE):
        enough = np.mean(within != everything) > _FEW or not _is_heavy(within)
        if times >= _TIMES and enough:
            break
        middle, reach = float(within.mean()), _FAR * float(within.std())
        within = np.clip(everything, middle - reach, middle + reach)
    return middle - reach, middle + reach


def _is_heavy(rewards: FloatArray) -> bool:
    away = np.square(rewards - rewards.mean())
    return bool(away[away > _FAR**2 * rewards.var()].sum() > _HEAVY * away.sum())
