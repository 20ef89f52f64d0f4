"""Whether at most one arm pays at a context, and hyperparameters for that case.

Rewards of two values only. Implied rewards (``models.exclusive``) are judged by leave-one-out
errors of the real ones: what an arm was seen to pay is predicted without that visit's context, with
what successes of other arms imply and without it. The evidence would not do. It is the probability
of real and implied rewards together, and it prefers bandwidths that are too short where rewards are
one of two values. So the common level of the bandwidths, the noise and the doubt in implied rewards
minimise

    ½·n·ln(mean squared leave-one-out error) − ln(prior density)

and the relative bandwidths are the evidence's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models import Exclusive
from contextgap.models.tuning.criteria import Data, noise_of, part_of
from contextgap.models.tuning.descent import Evaluation, Steps
from contextgap.models.tuning.search import Hyperparameters, Search

# Implied rewards of all arms make factors of as many rows as there are rewards; the model keeps at
# most so many numbers.
MOST_NUMBERS = 4e7
_OPERATIONS = 2 * 500**3  # of one evaluation at most, which says how many rewards are used
_LEAST = 20  # rewards
# Steps of the search: of the level of the bandwidths, of the log ratio, and the doubts to try.
_LEVEL, _RATIO, _DOUBTS = 0.5, 1.5, (1.0, 4.0, 16.0, math.inf)
_LEVELS, _RATIOS = (-2.0, 2.0), (math.log(1e-3), math.log(30.0))
_MOST = 40  # evaluations
_FEW_VALUES = 10  # of every column, where contexts come again by themselves
_LEAST_ERROR = 1e-4  # squared errors are no smaller than this share of the rewards' variance


class Point(NamedTuple):
    """Where the search is."""

    level: float  # added to the logarithms of the bandwidths
    ratio: float  # the logarithm of the ridge over the reward scale
    doubt: int  # a place in the list of doubts; the last stands for no implied rewards


class Implied(NamedTuple):
    """The best hyperparameters with implied rewards."""

    found: Hyperparameters
    gain: float  # in nats, over the best without
    rewards: list[FloatArray]  # those used, by arm
    end: tuple[str, Point]  # the name of the kernel, and where the search ended


class _Arm(NamedTuple):
    """One arm's rows: contexts, visits of each, and what they paid or would have paid."""

    places: IntArray  # among the distinct contexts
    visits: FloatArray  # real ones at each
    implied: FloatArray  # implied ones
    total: FloatArray  # the sum of real rewards
    implied_total: FloatArray
    own: IntArray  # for each real reward, its row
    rewards: FloatArray


class LeaveOneOut:
    """Leave-one-out errors of real rewards.

    All visits of a context are left out at once, unless contexts are of so few values that they
    come again by themselves: the same row that is visited again would give its reward away.
    """

    def __init__(self, data: Data, relation: Exclusive) -> None:
        self.contexts, self.arms = _rows(data, relation)
        self.mean = float(np.concatenate(data[1]).mean())
        self.cost = sum(float(len(arm.places)) ** 3 for arm in self.arms) + 4e6

    def errors(self, kernel: Kernel, ratio: float, doubt: float) -> FloatArray:
        """Return the reward scale, then every arm's errors, arm after arm."""
        gram = kernel(self.contexts, self.contexts)
        squares, count, errors = 0.0, 0, []
        for arm in self.arms:
            precision = arm.visits + (arm.implied / doubt)
            kept = precision > 0  # without implied rewards, some contexts say nothing
            places, precision = arm.places[kept], precision[kept]
            target = (arm.total + arm.implied_total / doubt)[kept] / precision - self.mean
            covariance = gram[np.ix_(places, places)]
            covariance.flat[:: len(places) + 1] += ratio / precision
            factor, failed = dpotrf(covariance, lower=1, overwrite_a=1)
            if failed:
                return np.array([math.inf])
            solved, _ = dpotrs(factor, target, lower=1)
            diagonal = dpotri(factor, lower=1, overwrite_c=1)[0].diagonal()
            error = solved / diagonal
            predicted = np.zeros(len(kept))
            predicted[kept] = self.mean + target - error
            real = arm.visits[kept] > 0
            squares += float((error**2 * diagonal)[real].sum())
            count += int(real.sum())
            errors.append(arm.rewards - predicted[arm.own])
        return np.concatenate([[squares / max(count, 1)], *errors])


def _rows(data: Data, relation: Exclusive) -> tuple[FloatArray, list[_Arm]]:
    """Return the distinct contexts, and every arm's rows."""
    counts = [len(y) for y in data[1]]
    everything, rewards = np.vstack(data[0]), np.concatenate(data[1])
    distinct, place = everything, np.arange(len(everything))
    if not _comes_again(everything):
        distinct, place = np.unique(everything, axis=0, return_inverse=True)
        place = place.reshape(-1)
    whose = np.repeat(np.arange(len(counts)), counts)
    implying = relation.implying(rewards, len(counts))
    implied = np.where(rewards == relation.high, relation.low, relation.high)
    arms = []
    for arm in range(len(counts)):
        own, others = whose == arm, implying & (whose != arm)
        rows, at = np.unique(place[own | others], return_inverse=True)
        row = np.zeros(len(place), dtype=np.intp)
        row[own | others] = at.reshape(-1)
        every = np.ones(len(row))
        arms.append(
            _Arm(
                rows,
                visits=_summed(row[own], every[own], len(rows)),
                implied=_summed(row[others], every[others], len(rows)),
                total=_summed(row[own], rewards[own], len(rows)),
                implied_total=_summed(row[others], implied[others], len(rows)),
                own=row[own],
                rewards=rewards[own],
            )
        )
    return distinct, arms


def _comes_again(contexts: FloatArray) -> bool:
    """Whether contexts are of few values, so that those deployed on are the same ones."""
    return all(len(np.unique(column)) <= _FEW_VALUES for column in contexts.T)


def _summed(row: IntArray, values: FloatArray, rows: int) -> FloatArray:
    return np.bincount(row, values, minlength=rows).astype(np.float64)


def two_values(rewards: Sequence[FloatArray]) -> Exclusive | None:
    """Return what a reward would imply, if there are exactly two values and several arms."""
    values = np.unique(np.concatenate(rewards))
    if len(values) != 2 or len(rewards) < 2:
        return None
    return Exclusive(float(values[0]), float(values[1]), 1.0)


def implied(
    starts: Mapping[str, tuple[Search, FloatArray]],
    data: Data,
    n_arms: int,
    known: Mapping[str, Sequence[float]],
) -> Steps[Implied | None]:
    """Return the best fit with implied rewards, or None where one without predicts as well.

    ``starts`` are searches of kernels and the points that they found, by name; ``known`` is where
    the last search ended for some of them.
    """
    relation, count = two_values(data[1]), sum(map(len, data[1]))
    if relation is None or noise_of(data) or count < _LEAST or n_arms * count**2 > MOST_NUMBERS:
        return None
    part, judge = data, LeaveOneOut(data, relation)
    if judge.cost > _OPERATIONS:
        part = part_of(data, count * (_OPERATIONS / judge.cost) ** (1 / 3), power=1)
        if two_values(part[1]) is None:
            return None
        judge = LeaveOneOut(part, relation)
    best: tuple[float, str, Point, FloatArray] | None = None
    alone = math.inf
    for name, (search, theta) in starts.items():
        end = known.get(f"exclusive {name}")
        first = None if end is None else Point(end[0], end[1], int(end[2]))
        loss, point, answer, without = yield from _lowest(judge, search, theta, first)
        alone = min(alone, without)
        if best is None or loss < best[0]:
            best = loss, name, point, answer
    assert best is not None
    loss, name, point, answer = best
    if _DOUBTS[point.doubt] == math.inf:
        return None
    scale = max(float(answer[0]), _LEAST_ERROR * starts[name][0].guess)
    counts = np.cumsum([len(y) for y in part[1]])[:-1]
    search, theta = starts[name]
    found = Hyperparameters(
        kernel=search.kernel(_moved(search, theta, point), scale),
        ridge=math.exp(point.ratio) * scale,
        prior_mean=judge.mean,
        loss=loss,
        errors=tuple(np.split(answer[1:], counts)),
        alike=Exclusive(relation.low, relation.high, _DOUBTS[point.doubt]),
    )
    return Implied(found, alone - loss, list(part[1]), (name, point))


def _moved(search: Search, theta: FloatArray, point: Point) -> FloatArray:
    """Return the search variable at a point."""
    theta = theta.copy()
    theta[: len(search.reference)] += point.level
    theta[-1] = point.ratio
    return theta


def _lowest(
    judge: LeaveOneOut, search: Search, theta: FloatArray, start: Point | None
) -> Steps[tuple[float, Point, FloatArray, float]]:
    """Return the lowest loss, where, its errors, and the lowest loss without implied rewards.

    Neighbours of the best point are tried until none is better.
    """
    tried: dict[Point, float] = {}
    best: tuple[float, Point, FloatArray] | None = None
    first = Point(0.0, float(np.clip(theta[-1], *_RATIOS)), 0) if start is None else start
    waiting = [first._replace(doubt=doubt) for doubt in range(len(_DOUBTS))]
    while waiting and len(tried) < _MOST:
        point = waiting.pop(0)
        if point in tried:
            continue
        moved = _moved(search, theta, point)
        settings = search.kernel(moved, 1.0), math.exp(point.ratio), _DOUBTS[point.doubt]
        answer = yield Evaluation(judge.cost, partial(judge.errors, *settings))
        loss = math.inf
        if len(errors := answer[1:]):
            spread = float(errors @ errors) / len(errors) + _LEAST_ERROR * search.guess
            loss = 0.5 * len(errors) * math.log(spread) + search.prior_loss(moved)
        tried[point] = loss
        if best is None or loss < best[0]:
            best = loss, point, answer
        if not waiting:
            waiting = [each for each in _neighbours(best[1], search) if each not in tried]
    assert best is not None
    without = min(loss for point, loss in tried.items() if _DOUBTS[point.doubt] == math.inf)
    return *best, without


def _neighbours(point: Point, search: Search) -> list[Point]:
    """Return the points a step away, and the same without implied rewards."""
    found = []
    for step in (-1, 1):
        level, ratio = point.level + step * _LEVEL, point.ratio + step * _RATIO
        if len(search.reference) and _LEVELS[0] <= level <= _LEVELS[1]:
            found.append(point._replace(level=level))
        if _RATIOS[0] <= ratio <= _RATIOS[1]:
            found.append(point._replace(ratio=ratio))
        if 0 <= point.doubt + step < len(_DOUBTS):
            found.append(point._replace(doubt=point.doubt + step))
    without = [each._replace(doubt=len(_DOUBTS) - 1) for each in (point, *found)]
    return [*found, *without]
