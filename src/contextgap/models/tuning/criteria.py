"""What hyperparameters are judged by: evidence or leave-one-out, on a sample of the observations.

An arm's rewards y have covariance s²·C, C = K + ratio·I, where s² is the reward scale and ratio the
ridge in units of it (with the noise that single rewards have, in units of it too, added), and a
mean m that all arms share. With a = C⁻¹(y − m) and c the diagonal of
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
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.models import Ageing

# A criterion costs as much as factorising every arm's covariance; this many operations are those of
# two arms with 600 observations each.
MOST_OPERATIONS = 2 * 600**3
# Contexts, rewards and, where rewards have noise of their own, its variances, all by arm; where
# rewards may age, variances or an empty list, and when each was observed.
Data: TypeAlias = tuple[list[FloatArray], ...]
Limits: TypeAlias = tuple[float, float]
_FAR = 3.0  # standard deviations from the mean
# Rounds in which limits are found for what lies within the last ones: so many, and up to so many
# more while hardly any reward is beyond them, since a single one may be far beyond imagination.
_TIMES, _MORE, _FEW = 3, 50, 0.01
# The share of the variance that far rewards carry, from which they are too heavy: 0.03 of normally
# distributed rewards, 0.3 of exponential ones, 0.6 of log-normal ones with deviation 1.
_HEAVY = 0.5


class Score(NamedTuple):
    """A criterion's verdict on settings, with the mean and reward scale s² best for them.

    What takes longer than the loss itself is computed when it is called; one of them, and once.
    """

    loss: float  # to be minimised, in nats for all observations together
    prior_mean: float
    reward_scale: float
    # The matrices whose inner products with dC change the loss, and leave-one-out residuals.
    slopes: Callable[[], list[FloatArray]]
    errors: Callable[[], list[FloatArray]]


class Stack(NamedTuple):
    """The rewards of arms of like size, one row per arm, filled up with zeros."""

    rewards: FloatArray
    present: FloatArray  # 1 where there is a reward, else 0


Criterion = Callable[..., Score | None]


def evidence(
    covariances: Sequence[FloatArray],
    stacks: Sequence[Stack],
    guess: float,
    trust: float,
    given: float | None = None,
) -> Score | None:
    """Return the negative log likelihood of the rewards but for a constant.

    ``covariances`` has an array of C's for every stack, which is overwritten; where no reward is, C
    is as the identity. ``guess`` is the reward scale before anything was seen, and ``trust`` how
    many observations that is worth; a scale that is ``given`` is the one used. The result is None
    if a C is not positive definite.
    """
    if not _factorised(covariances):
        return None
    both = [_solved(factors, each) for factors, each in zip(covariances, stacks, strict=True)]
    prior_mean = sum(np.vdot(one, y) for (_, one), (y, _) in zip(both, stacks, strict=True))
    prior_mean /= sum(one.sum() for _, one in both)
    solved = [plain - prior_mean * one for plain, one in both]
    total = sum(np.vdot(a, y - prior_mean) for a, (y, _) in zip(solved, stacks, strict=True))
    count = sum(present.sum() for _, present in stacks) + trust
    scale, misfit = _scale(total, count, guess, trust, given)
    log_det = sum(2.0 * float(np.log(diagonals(each)).sum()) for each in covariances)
    loss = 0.5 * log_det + 0.5 * count * math.log(scale / guess) + misfit

    def slopes() -> list[FloatArray]:
        for inverses, a, (_, present) in zip(_inverted(covariances), solved, stacks, strict=True):
            # dC is symmetric: half of the diagonal and all above count as half of the whole.
            diagonals(inverses)[:] *= 0.5 * present
            for inverse, own in zip(inverses, a, strict=True):
                dger(-0.5 / scale, own, own, a=inverse.T, overwrite_a=1)
        return list(covariances)

    def errors() -> list[FloatArray]:
        return [a / _precisions(each) for a, each in zip(solved, covariances, strict=True)]

    return Score(float(loss), float(prior_mean), float(scale), slopes, errors)


def _scale(
    total: float, count: float, guess: float, trust: float, given: float | None
) -> tuple[float, float]:
    """Return the best reward scale, or the one given, and what that adds to the loss."""
    best = (max(total, 0.0) + trust * guess) / count  # rounding may leave less than nothing
    return (best, 0.0) if given is None else (given, 0.5 * count * (best / given - 1.0))


def leave_one_out(
    covariances: Sequence[FloatArray],
    stacks: Sequence[Stack],
    guess: float,
    trust: float,
    given: float | None = None,
) -> Score | None:
    """Return how badly every reward is predicted by the arm's other rewards; see ``evidence``."""
    if not _factorised(covariances):
        return None
    matrices = [_mirrored(each) for each in _inverted(covariances)]
    precisions = [diagonals(inverses) for inverses in matrices]
    plain = [_times(inverses, y) for inverses, (y, _) in zip(matrices, stacks, strict=True)]
    ones = [_times(inverses, one) for inverses, (_, one) in zip(matrices, stacks, strict=True)]
    arms = list(zip(plain, ones, precisions, strict=True))
    weight = sum((one**2 / c).sum() for _, one, c in arms)
    prior_mean = sum((a * one / c).sum() for a, one, c in arms) / weight if weight > 0 else 0.0
    solved = [a - prior_mean * one for a, one, _ in arms]
    total = sum((a**2 / c).sum() for a, c in zip(solved, precisions, strict=True))
    count = sum(present.sum() for _, present in stacks) + trust
    scale, misfit = _scale(total, count, guess, trust, given)
    loss = -0.5 * sum(np.log(c).sum() for c in precisions) + 0.5 * count * math.log(scale / guess)
    loss += misfit

    def slopes() -> list[FloatArray]:
        found = []
        for inverse, a, c, error, (_, present) in zip(
            matrices, solved, precisions, errors(), stacks, strict=True
        ):
            spread = present * (0.5 / c + 0.5 * error**2 / scale)
            crossed = _times(inverse, error)[:, :, None] * a[:, None, :]
            found.append((inverse * spread[:, None, :]) @ inverse - crossed / scale)
        return found

    def errors() -> list[FloatArray]:
        return [a / c for a, c in zip(solved, precisions, strict=True)]

    return Score(float(loss), float(prior_mean), float(scale), slopes, errors)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "loo": leave_one_out}


def _factorised(covariances: Sequence[FloatArray]) -> bool:
    """Replace each C by its upper Cholesky factor, zero below; return whether all have one."""
    # What is above the diagonal here is below it in LAPACK's order, in which this is in place.
    for stack in covariances:
        for each in stack:
            if dpotrf(each.T, lower=1, clean=1, overwrite_a=1)[1]:
                return False
    return True


def _solved(factors: FloatArray, stack: Stack) -> FloatArray:
    """Return C⁻¹y and C⁻¹1 for every arm."""
    sides = np.stack(stack, axis=1)  # by arm, the two right-hand sides
    for factor, side in zip(factors, sides, strict=True):
        dpotrs(factor.T, side.T, lower=1, overwrite_b=1)
    return np.moveaxis(sides, 1, 0)


def _inverted(factors: Sequence[FloatArray]) -> Sequence[FloatArray]:
    """Replace upper Cholesky factors by the upper halves of the inverses."""
    for stack in factors:
        for each in stack:
            dpotri(each.T, lower=1, overwrite_c=1)
    return factors


def _precisions(factors: FloatArray) -> FloatArray:
    """Return the diagonals of the inverses, given upper Cholesky factors, which are spoilt."""
    for each in factors:
        dtrtri(each.T, lower=1, overwrite_c=1)
    return np.asarray(np.einsum("aij,aij->ai", factors, factors))


def diagonals(stack: FloatArray) -> FloatArray:
    """Return the diagonals of square matrices, to read or to change."""
    return stack.reshape(len(stack), -1)[:, :: stack.shape[1] + 1]


def _mirrored(upper: FloatArray) -> FloatArray:
    """Return the symmetric matrices whose upper halves are given, with zeros below."""
    whole = upper + upper.transpose(0, 2, 1)
    diagonals(whole)[:] *= 0.5
    return whole


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def distinct(data: Data) -> Data:
    """Return each arm's observations, visits of one context once where they always agree."""
    # If repeated observations agree to the last digit, their noise does not change between visits:
    # it would be mistaken for no noise, and the function for noise. If any two disagree, every
    # visit has noise of its own and counts.
    visits = [_first_visits(x, y) for x, y in zip(data[0], data[1], strict=True)]
    firsts = [first for first in visits if first is not None]
    return data if len(firsts) < len(visits) else _taken(data, firsts)


def part_of(data: Data, operations: float = MOST_OPERATIONS, power: int = 3) -> Data:
    """Return each arm's observations, thinned out evenly over time to what may be used.

    Those of an arm with n of them cost n to the power given; all together cost at most
    ``operations``.
    """
    most = _most_each([len(y) for y in data[1]], operations, power)
    places = [evenly(np.arange(len(y)), most) for y in data[1]]
    return _taken(data, places)


def _taken(data: Data, places: Sequence[IntArray]) -> Data:
    rows = (zip(each, places, strict=True) if each else () for each in data)
    return tuple([own[kept] for own, kept in each] for each in rows)


def noise_of(data: Data) -> list[FloatArray] | None:
    """Return the variances of noise that rewards have besides the ridge; None if there is none."""
    return data[2] if len(data) > 2 and data[2] else None


def correlations(data: Data, ageing: Ageing | None) -> list[FloatArray] | None:
    """Return those of each arm's rewards that come from when they were observed; None for 1."""
    return None if ageing is None else [ageing.correlations(own, own) for own in data[3]]


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
    return max(1, int(allowed[fits[0]] if len(fits) else ordered[-1]))


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
