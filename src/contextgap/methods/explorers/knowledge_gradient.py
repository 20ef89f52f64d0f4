"""The knowledge gradient: try the arm that is expected to improve deployment most.

Trying arm a at x moves its mean at another context x' by s·Z, with Z standard normal and
s = covariance of arm a between x and x' / √(variance at x + ridge). What is deployed at x' then
pays max(mean of a + s·Z, best other mean) instead of the best mean now. In expectation, with the
distance D = |mean of a − best other mean| at x', that is a gain of

    |s|·h(D/|s|)        h(u) = φ(u) − u·Φ(−u)

(Frazier, Powell and Dayanik, 2009, for one context). It is averaged over reference contexts, which
stand for those to be deployed on.

Where rewards are noisy, a single one moves hardly anything, and the gain says little about what
several would. The average of t rewards at x has the noise ridge/t; the gain of t rewards, divided
by t, is highest for some t, and that is what arms are compared by (Frazier and Powell, "Paradoxes
in learning and the marginal value of information", 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.components import LATER
from contextgap.methods.explorers.base import (
    Explorer,
    Moment,
    Pool,
    ReferringExplorer,
    least_pulled,
)
from contextgap.methods.explorers.contextual_gap import ContextualGap

_SCALE = 1 / np.sqrt(2 * np.pi)
# Moves below the distance by this factor gain less than the smallest float: with many observations,
# almost all moves.
_FAR = 40.0
_NEAR, _LEFT = 6.0, 2e-10  # moves below it by the first factor gain less than the second times them
_FIRST = 4  # gains with the largest bounds, which are computed first
_REPEATS = 256  # rewards of one arm that GainOrGap looks ahead to
_OPTIMISM = 4.0  # standard deviations, where at most one arm pays at a context
_TIE = 1e-9  # of the highest upper bound, so that rounding decides nothing


@dataclass(frozen=True)
class KnowledgeGradient(ReferringExplorer):
    """Try the arm whose reward is expected to improve deployment most.

    Reference contexts are the current one and up to ``most`` of those whose rewards were told,
    evenly spread over time; or ``references``, a sample of those to be deployed on.

    Parameters
    ----------
    most
        Highest number of seen contexts to use as references; more take more time.
    local
        Use no reference but the current context.
    references
        Contexts to use as references, a table as the learner takes them; kept as a tuple of tuples,
        so that files can hold it.
    columns
        The names of its columns; taken from the table, if it has names. Without them, columns are
        in the learner's order.
    repeats
        How many rewards of one arm to look ahead to, at most: the highest gain per reward of 1, 4,
        16, ... of them counts. 1 is the plain knowledge gradient.

    Examples
    --------
    >>> explorer = cg.explorers.KnowledgeGradient(repeats=16)
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    most: int = 200
    local: bool = False
    references: Any = field(default=None, repr=False)
    columns: tuple[str, ...] | None = field(default=None, repr=False, compare=False, metadata=LATER)
    repeats: int = field(default=1, metadata=LATER)
    reason: ClassVar[str] = "the highest expected gain for deployment"

    def __post_init__(self) -> None:
        checks.whole("most", self.most, least=1)
        checks.whole("repeats", self.repeats, least=1)
        checks.truth("local", self.local)
        if self.references is not None and self.local:
            raise ValueError("references must be None if local is True, which uses none")
        self._read_references()

    def pick(self, moment: Moment) -> int:
        """Return argmax of the expected gain per cost, or what Contextual-Gap picks without any.

        A learner that believes to know everything may be wrong: the first rewards of every arm
        happened to be the same, say. Where beliefs are so narrow that no gain is left, which arm
        comes first must not decide.
        """
        gains = self.gain(moment)
        if moment.costs is not None:
            gains = gains / moment.costs
        return int(gains.argmax()) if gains.max() > 0 else ContextualGap().pick(moment)

    def gain(self, moment: Moment) -> FloatArray:
        """Return by how much trying each arm now is expected to raise the reward of deployment."""
        reference = self._reference(0 if self.local else moment.seen, moment.read)
        ahead = moment.look_ahead(reference)
        counted = None if self.references is None else -1  # the current context is the last
        mean, moves = ahead.mean[:counted], ahead.move[:counted]
        here = ahead.move[-1] if moves.ndim == 2 else ahead.move[-1].diagonal()
        # ``here`` is variance / √(variance + ridge).
        variance = 0.5 * here * (here + np.sqrt(here**2 + 4 * moment.ridge))
        if moves.ndim == 2:
            times = _several(self.repeats)[:, None]
            factors = _factors(variance, moment.ridge, times)
            return _gains_per_reward(distances(mean), moves, factors, times)
        lines = partial(_average_line, mean[:, None], moves)
        return self._per_reward(lines, variance, moment.ridge)

    def choose(self, pool: Pool) -> int:
        """Return the context at which the best arm to try has the highest expected gain per cost.

        References are the given ones, or up to ``most`` contexts of the pool. Where nothing is to
        be gained at any context, it is the one that Contextual-Gap chooses.
        """
        gains = self.pool_gain(pool).max(axis=1)
        return int(gains.argmax()) if gains.max() > 0 else ContextualGap().choose(pool)

    def pool_gain(self, pool: Pool) -> FloatArray:
        """Return the expected gain per cost of trying each arm at each context of the pool.

        Gains that are surely not the highest of all may be given as 0.
        """
        belief, variance = pool.belief, pool.belief.std**2
        costs = np.ones(variance.shape) if pool.costs is None else pool.costs
        if self.local:
            scale = np.sqrt(variance + pool.ridge)
            if belief.covariance is None:
                apart, moves = distances(belief.mean), variance / scale
                by_arm = self._per_reward(lambda f: gain(apart, moves * f), variance, pool.ridge)
                return by_arm / costs
            means, moves = belief.mean[:, None], belief.covariance / scale[..., None]
            by_arm = self._per_reward(
                lambda f: highest_line(means, moves * f[..., None]), variance, pool.ridge
            )
            return by_arm / costs
        reference = self._reference(len(pool), pool.read)
        mean, gains = pool.means(reference), np.zeros(variance.shape)
        away, times = distances(mean), _several(self.repeats)[:, None]
        for arm, own in enumerate(variance.T):
            moves = pool.moves(arm, reference)
            if moves.ndim == 3:
                lines = partial(_average_line, mean[:, None], moves)
                gains[:, arm] = self._per_reward(lines, own, pool.ridge) / costs[:, arm]
            else:
                own_away, factors = away[:, [arm] * len(own)], _factors(own, pool.ridge, times)
                about = own_away, moves, factors, times, costs[:, arm]
                gains[:, arm] = _highest_gains(*about, gains.max())
        return gains

    def _per_reward(
        self, gain_with: Callable[[FloatArray], FloatArray], variance: FloatArray, ridge: float
    ) -> FloatArray:
        """Return the highest gain per reward; ``gain_with`` takes how much farther several move."""
        gains = [
            gain_with(_factors(variance, ridge, times)) / times for times in _several(self.repeats)
        ]
        return np.asarray(np.max(gains, axis=0))


@dataclass(frozen=True)
class GainOrGap(Explorer):
    """Try the arm that is expected to improve deployment most, by a rule that suits the model.

    That is the knowledge gradient with repeated rewards. Where arms share what they learn,
    computing it takes many times as long, and Contextual-Gap picks instead.

    Where at most one arm pays at a context, as with classes, a success settles all arms and a
    failure only one. There the arm with the highest upper bound is tried, of 4 standard deviations
    and from every arm's own rewards: what a success of another arm implies may be wrong, and would
    never be tried again.

    .. versionadded:: 0.2

    Examples
    --------
    >>> explorer = cg.explorers.GainOrGap()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    reason: ClassVar[str] = "expected to improve deployment most"

    def pick(self, moment: Moment) -> int:
        """Return the pick of the rule that suits the model."""
        if moment.believe_own is not None and moment.costs is None:
            if len(moment.pulls) == 2:
                return least_pulled(moment)
            belief = moment.believe_own()
            upper = belief.mean + _OPTIMISM * belief.std
            return int((upper >= upper.max() - _TIE * abs(upper.max())).argmax())
        return _suited(moment.shares).pick(moment)

    def choose(self, pool: Pool) -> int:
        """Return the context chosen by the explorer that suits the model."""
        return _suited(pool.shares).choose(pool)


@cache
def _suited(shares: bool) -> Explorer:
    return ContextualGap() if shares else KnowledgeGradient(repeats=_REPEATS)


@cache
def _several(repeats: int) -> FloatArray:
    """Return 1, 4, 16, ..., so many rewards at most."""
    return np.array([4.0**power for power in range((repeats.bit_length() + 1) // 2)])


def _factors(variance: FloatArray, ridge: float, times: Any) -> FloatArray:
    """Return by how much farther several rewards move means than one does."""
    return np.asarray(np.sqrt((variance + ridge) / (variance + ridge / times)))


def _average_line(mean: FloatArray, moves: FloatArray, factor: FloatArray) -> FloatArray:
    """Return averages of ``highest_line`` with moves times a factor for each thing tried."""
    return np.asarray(highest_line(mean, moves * factor[:, None]).mean(axis=0))


def _average_gains(
    distance: FloatArray, move: FloatArray, factors: FloatArray, far: float = _FAR
) -> FloatArray:
    """Return the averages over references of ``gain`` with moves times each row of factors."""
    # Factors rise from row to row, and what is too far away for the last is so for all.
    (references, arms), move = move.shape, np.abs(move)
    near = np.flatnonzero(move * factors[-1] > distance / far)
    arm = near % arms
    gains = _gain(distance.take(near), move.take(near) * factors.take(arm, axis=1))
    place = arm + arms * np.arange(len(factors))[:, None]
    total = np.bincount(place.ravel(), gains.ravel(), minlength=arms * len(factors))
    return np.asarray(total.reshape(factors.shape) / references)


def _gains_per_reward(
    distance: FloatArray, move: FloatArray, factors: FloatArray, times: FloatArray
) -> FloatArray:
    """Return the average gain of each column of moves, of as many rewards as gain most per one."""
    return np.asarray((_average_gains(distance, move, factors) / times).max(axis=0))


def _highest_gains(
    distance: FloatArray,
    move: FloatArray,
    factors: FloatArray,
    times: FloatArray,
    costs: FloatArray,
    best: float,
) -> FloatArray:
    """Return the same per cost, 0 where it is surely not the highest, nor above ``best``.

    The gain g is convex in the move, and 0 without one; so with
    the factors f of t rewards, of which the last is the largest, F, and f ≤ √t,

        g(f·move)/t ≤ g(F·move)·f/(F·t) ≤ g(F·move)/F
    """
    bound = _average_gains(distance, move, factors[-1:], _NEAR)[0] / factors[-1]
    bound = (bound + _LEFT * np.abs(move).max(axis=0)) * (1 + 1e-9) / costs  # rounding
    order, gains, first = np.argsort(-bound), np.zeros(len(bound)), 0
    while first < len(order) and bound[order[first]] > best:
        some = order[first : max(_FIRST, 2 * first)]
        own = _gains_per_reward(distance[:, some], move[:, some], factors[:, some], times)
        gains[some] = own / costs[some]
        best, first = max(best, float(gains[some].max())), max(_FIRST, 2 * first)
    return gains


def distances(mean: FloatArray) -> FloatArray:
    """Return each arm's distance from the best other mean; infinite for a single arm."""
    if mean.shape[1] == 1:
        return np.full_like(mean, np.inf)  # nothing to choose, nothing to gain
    top_two = np.partition(mean, -2, axis=1)[:, -2:]
    second, highest = top_two[:, :1], top_two[:, 1:]
    return np.asarray(np.abs(mean - np.where(mean == highest, second, highest)))


def highest_line(mean: FloatArray, slope: FloatArray) -> FloatArray:
    """Return E max(mean + slope·Z) − max(mean) over the last axis, where all arms may move."""
    # Going up in Z from −∞, the highest line has the lowest slope first; the next is the one that
    # crosses it soonest. On every stretch between two crossings one line is integrated.
    from scipy.special import ndtr

    mean, slope = np.broadcast_arrays(mean, slope)
    shape, best = mean.shape[:-1], mean.max(axis=-1)
    mean, slope = mean.reshape(-1, mean.shape[-1]), slope.reshape(-1, mean.shape[-1])
    going = np.arange(len(mean))  # the rows whose highest line changes once more
    b = slope.min(axis=-1)
    a = np.where(slope == b[:, None], mean, -np.inf).max(axis=-1)
    start, total = np.full(len(mean), -np.inf), np.zeros(len(mean))
    while len(going):
        crossing = np.full(mean.shape, np.inf)
        np.divide(a[:, None] - mean, slope - b[:, None], out=crossing, where=slope > b[:, None])
        end = crossing.min(axis=-1)
        density = _SCALE * (np.exp(-0.5 * start**2) - np.exp(-0.5 * end**2))
        total[going] += a * (ndtr(end) - ndtr(start)) + b * density
        more = np.isfinite(end)
        going, mean, slope, start = going[more], mean[more], slope[more], end[more]
        # Of lines that cross at the same place, the steepest is the highest from there on.
        steepest = np.where(crossing[more] <= start[:, None], slope, -np.inf).argmax(axis=-1)
        rows = np.arange(len(going))
        a, b = mean[rows, steepest], slope[rows, steepest]
    return np.asarray(np.maximum(total.reshape(shape) - best, 0.0))


def gain(distance: FloatArray, move: FloatArray) -> FloatArray:
    """Return move·h(distance/move), elementwise."""
    move = np.abs(move)
    near = (move > distance / _FAR).nonzero()
    gains = np.zeros_like(move)
    gains[near] = _gain(np.broadcast_to(distance, move.shape)[near], move[near])
    return gains


def _gain(distance: FloatArray, move: FloatArray) -> FloatArray:
    """Return the same for moves that are positive, and not by so much smaller than distances."""
    from scipy.special import ndtr  # slow to load, and other explorers do not need it

    u = distance / move
    return np.asarray(np.maximum(move * (_SCALE * np.exp(-0.5 * u**2) - u * ndtr(-u)), 0.0))
