"""Searches for the best hyperparameters of one kernel, by descent from several starting points.

A handful of rewards, or many that are mostly noise, do not distinguish a rough function from noise.
A prior on the hyperparameters decides then, and informative rewards override it: normal
distributions of their logarithms. Bandwidths are counted in units of √d standard deviations of
their column, as in ``Gaussian.from_contexts``: in those units the distance between two contexts
does not depend on how many numbers a context has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.kernels import Constant, Kernel, Linear
from contextgap.kernels.base import Scaled, Sum
from contextgap.kernels.categories import deviations
from contextgap.kernels.stationary import Stationary, squared_distances
from contextgap.models import Alike, Features, Relation
from contextgap.models.tuning.criteria import (
    CRITERIA,
    Data,
    Limits,
    Score,
    Stack,
    diagonals,
    noise_of,
    part_of,
)
from contextgap.models.tuning.descent import Evaluation, Steps, descend

_SHORTEST, _LONGEST = math.log(1e-3), math.log(1e2)  # of a bandwidth, in the search's units
_WEIGHTS = (math.log(1e-4), math.log(1e3))  # of trend and constant part
_RATIOS = (math.log(1e-8), math.log(1e4))
# Where to start: levels of the bandwidths, and ratios of ridge over reward scale.
_RATIO = 1e-2
_STARTS = ((0.0, _RATIO), (0.0, 1.0), (1.0, 10.0), (-1.0, 1.0), (-1.5, _RATIO), (-3.0, _RATIO))
_HOPELESS = 1e12
_PRECISION = 0.02  # of the loss, in nats
_FILLING = 4000  # numbers of a matrix that may be filled up to compute with arms together
_MOST_DISTINCT, _NEIGHBOURS = 1500, 100  # contexts, and those whose nearest one is searched for
# What an evaluation costs besides the cube of the numbers of observations, in operations.
_FIXED, _PER_ENTRY = 4e6, 300.0
# Squared distances are differences of squares where contexts are near; below this share of the
# largest square they are rounding errors.
_FAR, _ROUNDING = 1e6, 1e-14
# Logarithms of factors of the reward scale that are tried, and how often, where noise is known.
_SCALINGS, _FACTORS = 5, (-1.0, -0.4, -0.15, 0.0, 0.15, 0.4, 1.0)
_SETTLING = 20  # steps of the search for what is learnt from unclipped rewards
LEVEL_SPREAD = 0.7  # of all bandwidths together, around 1
WEIGHT, WEIGHT_SPREAD = -2.0, 2.0  # of a linear trend, and of the constant part
RATIO, RATIO_SPREAD = math.log(0.01), 3.0  # of the ridge over the reward scale
LOGIT_SPREAD = 2.0  # of the logit of the correlation between arms, around 0
FEATURES_LOGIT = 3.0  # where it is around this if arms have features, which users choose to matter
TRUST = 1.0  # observations that the first guess of the reward scale is worth


@dataclass(frozen=True)
class Hyperparameters:
    """Settings learnt from data.

    ``loss`` is the criterion's value and the prior's, in nats for all observations used, rewards
    clipped to the limits if there are any; only differences mean anything. ``errors`` are each
    reward minus its prediction from the other rewards of its arm, one array per arm; or from all
    others, where arms share.
    """

    kernel: Kernel  # with the bandwidths found, multiplied by the reward scale
    ridge: float  # the variance of the noise
    prior_mean: float
    loss: float
    errors: tuple[FloatArray, ...]
    alike: Relation | None = None  # None if arms have nothing in common


class BandwidthPrior(NamedTuple):
    """How far single bandwidths are from the others: a Student t distribution."""

    spread: float  # its scale
    tail: float  # its degrees of freedom: the fewer, the farther may a few bandwidths stand out


LOOSE = BandwidthPrior(0.3, 1.0)
# Squared errors of rewards that are one of two values, or of which a few are far away, seem to say
# more than they do.
TIGHT = BandwidthPrior(0.2, 4.0)


def bandwidth_loss(bandwidths: FloatArray, prior: BandwidthPrior) -> tuple[float, FloatArray]:
    """Return minus the log density of log bandwidths, up to a constant, and its slope."""
    level, (spread, tail) = float(bandwidths.mean()), prior
    away = bandwidths - level
    stretched = 1.0 + (away / spread) ** 2 / tail
    loss = 0.5 * (level / LEVEL_SPREAD) ** 2 + 0.5 * (tail + 1) * float(np.log(stretched).sum())
    pull = (tail + 1) / tail * away / (spread**2 * stretched)
    return loss, level / (len(bandwidths) * LEVEL_SPREAD**2) + pull - pull.mean()


def weight_loss(weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the same for logarithms: of the weights of trend and constant part, then the ratio."""
    centre, spread = np.full((2, len(weights)), [[WEIGHT], [WEIGHT_SPREAD]])
    centre[-1], spread[-1] = RATIO, RATIO_SPREAD
    away = (weights - centre) / spread
    return 0.5 * float(away @ away), away / spread


@dataclass(frozen=True)
class Terms:
    """A kernel without its overall factor: main + slope · trend + offset · 1.

    Only a main part with bandwidths can have a linear trend beside it; trend and offset are None
    where the kernel has no such part. ``tied`` says which bandwidth each column has; None if each
    has its own, or all have the same.
    """

    main: Kernel
    trend: Linear | None = None
    slope: float = 1.0
    offset: float | None = None
    tied: tuple[int, ...] | None = None

    @classmethod
    def of(cls, kernel: Kernel, tied: tuple[int, ...] | None = None) -> Terms:
        """Return a kernel's terms."""
        parts = _addends(kernel)
        levels = [factor for part, factor in parts if isinstance(part, Constant)]
        others = [(part, factor) for part, factor in parts if not isinstance(part, Constant)]
        if not others:
            return cls(Constant(), tied=tied)
        main, weight = others[0]
        trend, slope = None, 1.0
        if len(others) == 2 and isinstance(main, Stationary) and isinstance(others[1][0], Linear):
            trend, slope = others[1][0], others[1][1] / weight
        elif len(others) > 1:
            main, weight = others[0][1] * others[0][0], 1.0
            for part, factor in others[1:]:
                main = main + factor * part
        return cls(main, trend, slope, sum(levels) / weight if levels else None, tied)

    def scaled(self, factor: float) -> Kernel:
        """Return factor · (main + slope · trend + offset · 1)."""
        kernel: Kernel = factor * self.main
        if self.trend is not None:
            kernel = kernel + (factor * self.slope) * self.trend
        if self.offset is not None:
            kernel = kernel + (factor * self.offset) * Constant()
        return kernel

    @property
    def bandwidths(self) -> FloatArray:
        """The bandwidths that can be learnt; none if the main part has no bandwidth."""
        if not isinstance(self.main, Stationary):
            return np.empty(0)
        values = np.atleast_1d(np.asarray(self.main.bandwidth, dtype=np.float64))
        if self._untied:
            return values
        return values[np.unique(np.asarray(self.tied), return_index=True)[1]]

    def with_bandwidths(self, bandwidths: FloatArray) -> Terms:
        """Return the terms with other bandwidths; a single number stays a single number."""
        if not isinstance(self.main, Stationary):
            return self
        if isinstance(self.main.bandwidth, float):
            return replace(self, main=replace(self.main, bandwidth=float(bandwidths[0])))
        values = bandwidths if self._untied else bandwidths[np.asarray(self.tied)]
        return replace(self, main=replace(self.main, bandwidth=tuple(values.tolist())))

    def column_of(self, dimension: int) -> IntArray:
        """Return which of the bandwidths every column has."""
        if isinstance(self.main, Stationary) and isinstance(self.main.bandwidth, float):
            return np.zeros(dimension, dtype=np.intp)
        return np.arange(dimension) if self.tied is None else np.asarray(self.tied)

    @property
    def _untied(self) -> bool:
        single = isinstance(self.main, Stationary) and isinstance(self.main.bandwidth, float)
        return single or self.tied is None


def _addends(kernel: Kernel, factor: float = 1.0) -> list[tuple[Kernel, float]]:
    """Return the kernels that a kernel is the sum of, each with its factor."""
    if isinstance(kernel, Scaled):
        return _addends(kernel.kernel, factor * kernel.factor)
    if isinstance(kernel, Sum):
        return [*_addends(kernel.left, factor), *_addends(kernel.right, factor)]
    return [(kernel, factor)]


class _Part(NamedTuple):
    """A stack's kernel values and their slopes; how alike arms or times of its observations are."""

    values: FloatArray | None  # as ``alike``, None where arms have nothing in common
    steepness: FloatArray | None
    alike: FloatArray | None


class Search:
    """The search for a kernel's hyperparameters, from contexts and rewards by arm.

    The search variable θ holds the logarithms of the bandwidths, in units of √d standard deviations
    of their column; of slope and offset, where the kernel has them; what ``Sharing`` says, where
    arms share what they learn; and of ratio, the ridge over the reward scale. No arm's arrays are
    empty. Arms that share are one group of observations, others one group each; groups of like size
    are computed with together, as one stack of matrices. Rewards are clipped to ``limits`` for the
    search. ``aged`` has factors of covariances, by arm, where rewards age.
    """

    def __init__(
        self,
        terms: Terms,
        contexts: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        criterion: str,
        sharing: Sharing | None = None,
        limits: Limits | None = None,
        noise: Sequence[FloatArray] | None = None,
        aged: Sequence[FloatArray] | None = None,
    ) -> None:
        everything, all_rewards = np.vstack(contexts), np.concatenate(rewards)
        self.sharing = sharing
        if sharing is not None:
            contexts, rewards = [everything], [all_rewards]
            noise = None if noise is None else [np.concatenate(noise)]
        self.terms = terms
        self.criterion = CRITERIA[criterion]
        self.reference = _reference(everything, terms)
        self.bandwidth_of = terms.column_of(everything.shape[1])
        self.counts = [len(y) for y in rewards]
        self.stacks = _of_like_size(self.counts)
        self.cost = _FIXED + sum(n**3 + _PER_ENTRY * n**2 for n in self.counts)
        if len(self.reference):
            # In units of the reference and centred: differences of squares then lose nothing where
            # contexts are far from zero.
            centre = everything.mean(axis=0)
            unit = self.reference[self.bandwidth_of]
            scaled = [(x - centre) / unit for x in contexts]
            self.contexts = [_stacked([scaled[arm] for arm in stack]) for stack in self.stacks]
        else:
            self.fixed = self._kernels(terms.main, contexts)
        if terms.trend is not None:
            self.trends = self._kernels(terms.trend, contexts)
        # Bandwidths are learnt from differences between contexts. Rewards of several arms, or of
        # several visits, at one context count as one, so that they do not outweigh the prior.
        # Not so in tables, where contexts of few categories come again by themselves.
        numbers_alone = terms.tied is None
        distinct = len(np.unique(everything, axis=0)) if numbers_alone else len(everything)
        self.share = distinct / len(everything)
        usual = limits is None and len(np.unique(all_rewards)) > 2
        self.bandwidth_prior = LOOSE if usual else TIGHT
        self._set_rewards(rewards)
        # Noise of single rewards, and the reward scale it is counted in: see ``descend``.
        self.noise, self.noise_unit = None, self.guess
        if noise is not None:
            self.noise = [_stacked([noise[arm] for arm in stack]) for stack in self.stacks]
        self.aged = None
        if aged is not None:
            self.aged = [_square_stack([aged[arm] for arm in stack]) for stack in self.stacks]
        self.unclipped: Search | None = None
        if limits is not None:
            self.unclipped = copy(self)
            self._set_rewards([np.clip(y, *limits) for y in rewards])

    @cached_property
    def shortest(self) -> float:
        """The lowest logarithm of a bandwidth."""
        # With bandwidths so short that an observation says nothing about its neighbours, a kernel
        # only describes noise, which is what the ridge is for.
        if not len(self.reference):
            return _SHORTEST
        groups = zip(self.stacks, self.contexts, strict=True)
        scaled = [
            x[place, : self.counts[arm]] for own, x in groups for place, arm in enumerate(own)
        ]
        near = 0.5 * _nearest_distance(np.vstack(scaled))
        return max(_SHORTEST, math.log(near)) if near > 0 else _SHORTEST

    def _kernels(self, kernel: Kernel, contexts: Sequence[FloatArray]) -> list[FloatArray]:
        """Return a kernel's values between the contexts of each group, in stacks."""
        return [
            _square_stack([kernel(contexts[arm], contexts[arm]) for arm in stack])
            for stack in self.stacks
        ]

    def _set_rewards(self, rewards: Sequence[FloatArray]) -> None:
        self.rewards = [
            Stack(
                _stacked([rewards[arm] for arm in stack]),
                _stacked([np.ones(self.counts[arm]) for arm in stack]),
            )
            for stack in self.stacks
        ]
        everything = np.concatenate(rewards)
        deviation = float(everything.std())
        # Rounding leaves rewards that are all the same with a deviation of some ulps; and the
        # square of the deviation must be a number.
        constant = deviation <= max(1e-12 * float(np.abs(everything).max()), 1e-153)
        self.guess = 1.0 if constant else deviation**2

    @property
    def _alike(self) -> slice:
        """Where in the search variable the correlations of arms are."""
        first = len(self.reference) + (self.terms.trend is not None)
        first += self.terms.offset is not None
        return slice(first, first + (0 if self.sharing is None else self.sharing.size))

    def starts(self) -> list[FloatArray]:
        """Return starting points: some for any data, and the kernel's own settings."""
        starts = [self.start(level, ratio) for level, ratio in _STARTS]
        if len(self.reference):
            starts.append(self.start(np.log(self.terms.bandwidths / self.reference), _RATIO))
        return list({start.tobytes(): start for start in starts}.values())  # some are the same

    def descend(
        self, start: FloatArray, iterations: int, *, keep: int = 0
    ) -> Steps[tuple[float, FloatArray]]:
        """Return the lowest loss found from a start, and where; ``keep`` entries are fixed.

        The reward scale that is best for a point follows from the covariances, but not where noise
        of single rewards is known in units of its own. There the scale is given; descents and
        searches for a better scale alternate.
        """
        loss, theta = yield from self._descend(start, iterations, keep)
        for _ in range(_SCALINGS if self.noise is not None else 0):
            cost = self.cost / 2 * len(_FACTORS)
            moved = float((yield Evaluation(cost, partial(self._best_factor, theta)))[0])
            if not moved:
                break
            self.noise_unit *= math.exp(moved)
            theta = self._at_factor(theta, moved)
            loss, theta = yield from self._descend(theta, iterations, keep)
        return loss, theta

    def _at_factor(self, theta: FloatArray, moved: float) -> FloatArray:
        """Return the point with the same ridge, and the reward scale e^moved times as large."""
        return np.append(theta[:-1], np.clip(theta[-1] - moved, *_RATIOS))

    def _best_factor(self, theta: FloatArray) -> FloatArray:
        """Return the logarithm of the factor by which the reward scale is better."""
        losses = []
        for moved in _FACTORS:
            other = copy(self)
            other.noise_unit *= math.exp(moved)
            losses.append(other.loss(self._at_factor(theta, moved)))
        best = int(np.argmin(losses))
        better = losses[_FACTORS.index(0.0)] - losses[best] > _PRECISION
        return np.array([_FACTORS[best] if better else 0.0])

    def _descend(
        self, start: FloatArray, iterations: int, keep: int
    ) -> Steps[tuple[float, FloatArray]]:
        kept = [(value, value) for value in start[:keep].tolist()]

        def evaluation(theta: FloatArray) -> Evaluation:
            return Evaluation(self.cost, lambda: np.append(*self.loss_and_slope(theta)))

        bounds = [*kept, *self._bounds()[keep:]]
        return (yield from descend(evaluation, start, bounds, iterations, _PRECISION))

    def loss_at(self, theta: FloatArray) -> Steps[float]:
        """Return the loss at a point."""
        answer = yield Evaluation(self.cost / 2, lambda: np.array([self.loss(theta)]))
        return float(answer[0])

    def lowest(self, starts: Sequence[FloatArray]) -> Steps[FloatArray]:
        """Return the start with the lowest loss."""
        losses: list[float] = []
        for theta in starts:
            losses += [(yield from self.loss_at(theta))]
        return starts[int(np.argmin(losses))]

    def hyperparameters(self, theta: FloatArray) -> Steps[Hyperparameters]:
        """Return the hyperparameters at a point; with limits, those for unclipped rewards."""
        if self.unclipped is not None:
            settled = yield from self.unclipped.settled(theta)
            found = yield from self.unclipped.hyperparameters(settled)
            return replace(found, loss=(yield from self.loss_at(theta)))
        answer = yield Evaluation(self.cost, lambda: self._verdict(theta))
        loss, prior_mean, reward_scale = answer[:3].tolist()
        counts, alike = self.counts, None
        if self.sharing is not None:
            counts, alike = self.sharing.counts.tolist(), self.sharing.alike(theta[self._alike])
        return Hyperparameters(
            kernel=self.kernel(theta, reward_scale),
            ridge=math.exp(theta[-1]) * reward_scale,
            prior_mean=prior_mean,
            loss=loss,
            errors=tuple(np.split(answer[3:], np.cumsum(counts)[:-1])),
            alike=alike,
        )

    def kernel(self, theta: FloatArray, scale: float) -> Kernel:
        """Return the kernel at a point, multiplied by a reward scale."""
        terms = self._terms(theta)
        return terms.with_bandwidths(terms.bandwidths * self.reference).scaled(scale)

    def _verdict(self, theta: FloatArray) -> FloatArray:
        """Return loss, prior mean and reward scale at a point, then the errors arm after arm."""
        score = self._score(theta)[0]
        if score is None:
            raise ValueError("no setting explains the observations")
        loss = self.share * score.loss + self._prior_loss(theta)[0]
        errors = [np.empty(0)] * len(self.counts)
        for stack, found in zip(self.stacks, score.errors(), strict=True):
            for arm, own in zip(stack, found, strict=True):
                errors[arm] = own[: self.counts[arm]]
        return np.concatenate([[loss, score.prior_mean, score.reward_scale], *errors])

    def settled(self, theta: FloatArray) -> Steps[FloatArray]:
        """Return the best point with the same bandwidths."""
        return (yield from self.descend(theta, _SETTLING, keep=len(self.reference)))[1]

    def with_terms(self, terms: Terms) -> Search:
        """Return this search for another kernel, with as many bandwidths and this trend or none."""
        other = copy(self)
        other.terms = terms
        if self.unclipped is not None:
            other.unclipped = self.unclipped.with_terms(terms)
        return other

    def loss(self, theta: FloatArray) -> float:
        """Return the loss including the prior, for a third of the time of its slope."""
        score, _ = self._score(theta)
        return _HOPELESS if score is None else self.share * score.loss + self._prior_loss(theta)[0]

    def loss_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss including the prior, and its gradient."""
        score, parts = self._score(theta)
        if score is None:
            return _HOPELESS, np.zeros(len(theta))
        slope = np.zeros(len(theta))
        count = len(self.reference)
        for number, (matrix, part) in enumerate(zip(score.slopes(), parts, strict=True)):
            # All in place: touching fresh memory takes longer than computing.
            place, inner = count, matrix
            slope[-1] += math.exp(theta[-1]) * diagonals(matrix).sum()
            if self.sharing is not None and part.values is not None:
                by_observation = np.multiply(matrix, part.values, out=part.values)[0]
                slope[self._alike] += self.sharing.slopes(theta[self._alike], by_observation)
            if part.alike is not None:
                inner = np.multiply(matrix, part.alike, out=matrix)
            if self.terms.trend is not None:
                slope[place] += math.exp(theta[place]) * np.vdot(inner, self.trends[number])
                place += 1
            if self.terms.offset is not None:
                slope[place] += math.exp(theta[place]) * inner.sum()
            if part.steepness is not None:
                weights = np.multiply(inner, part.steepness, out=inner)
                slope[:count] += self._bandwidth_slopes(self.contexts[number], weights, theta)
        loss, prior_slope = self._prior_loss(theta)
        return self.share * score.loss + loss, self.share * slope + prior_slope

    def _score(self, theta: FloatArray) -> tuple[Score | None, list[_Part]]:
        terms, count, natural = self.terms, len(self.reference), np.exp(theta)
        slope, offset, ratio = natural[count], natural[self._alike.start - 1], natural[-1]
        alike = None
        if self.sharing is not None:
            by_arm = self.sharing.alike(theta[self._alike]).matrix(len(self.sharing.counts))
            alike = self.sharing.spread(by_arm)
        covariances, parts = [], []
        for place, (stack, (_, present)) in enumerate(zip(self.stacks, self.rewards, strict=True)):
            alike = alike if self.aged is None else self.aged[place]
            if isinstance(terms.main, Stationary):
                scaled = self.contexts[place] / natural[:count][self.bandwidth_of]
                values, steepness = terms.main.at_distances(_squared_distances(scaled))
            else:
                values, steepness = self.fixed[place], None
            values = values + (0.0 if terms.offset is None else offset)
            if terms.trend is not None:
                values += slope * self.trends[place]
            covariance = values if alike is None else values * alike
            for row, arm in enumerate(stack):
                if (own := self.counts[arm]) < covariance.shape[1]:
                    covariance[row, own:] = covariance[row, :, own:] = 0.0
            diagonal = diagonals(covariance)
            diagonal += ratio
            if self.noise is not None:
                diagonal += self.noise[place] / self.noise_unit
            diagonal[present == 0] = 1.0
            covariances.append(covariance)
            parts.append(_Part(None if alike is None else values, steepness, alike))
        given = None if self.noise is None else self.noise_unit
        return self.criterion(covariances, self.rewards, self.guess, TRUST, given), parts

    def _bandwidth_slopes(
        self, x: FloatArray, weights: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Σ weights_ik (x_ij − x_kj)² / bandwidth_j², without the differences."""
        sums = weights.sum(axis=1) + weights.sum(axis=2)
        squares = np.einsum("ai,aij,aij->j", sums, x, x) - 2 * np.einsum(
            "aij,aij->j", x, weights @ x
        )
        scaled = squares * np.exp(-2 * theta)[self.bandwidth_of]
        return np.bincount(self.bandwidth_of, scaled).astype(np.float64)

    def prior_loss(self, theta: FloatArray) -> float:
        """Return minus the log density of a point, up to a constant."""
        return self._prior_loss(theta)[0]

    def _prior_loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        count, alike = len(self.reference), self._alike
        weights = np.append(theta[count : alike.start], theta[-1])
        slope = np.zeros(len(theta))
        loss, slopes = weight_loss(weights)
        slope[count : alike.start], slope[-1] = slopes[:-1], slopes[-1]
        if self.sharing is not None:
            more, slope[alike] = self.sharing.prior_loss(theta[alike])
            loss += more
        if count:
            more, slope[:count] = bandwidth_loss(theta[:count], self.bandwidth_prior)
            loss += more
        return loss, slope

    def _terms(self, theta: FloatArray) -> Terms:
        count = len(self.reference)
        terms = self.terms.with_bandwidths(np.exp(theta[:count]))
        weights = np.exp(theta[count : self._alike.start]).tolist()
        if terms.offset is not None:
            terms = replace(terms, offset=weights.pop())
        return replace(terms, slope=weights.pop()) if terms.trend is not None else terms

    def start(self, level: float | FloatArray, ratio: float, offset: float = 0.0) -> FloatArray:
        """Return the point for log bandwidths, one or one per bandwidth, ratio and log offset."""
        bandwidths = np.clip(np.full(len(self.reference), level), self.shortest, _LONGEST)
        weights = [] if self.terms.trend is None else [WEIGHT]
        weights += [] if self.terms.offset is None else [offset]
        alike = np.empty(0) if self.sharing is None else self.sharing.start()
        return np.concatenate([bandwidths, weights, alike, [math.log(ratio)]])

    def _bounds(self) -> list[tuple[float, float]]:
        weights = (self.terms.trend is not None) + (self.terms.offset is not None)
        bounds = [(self.shortest, _LONGEST)] * len(self.reference)
        alike = [] if self.sharing is None else self.sharing.bounds
        return [*bounds, *[_WEIGHTS] * weights, *alike, _RATIOS]


def _reference(contexts: FloatArray, terms: Terms) -> FloatArray:
    """√d · (standard deviation of each column), or their geometric mean for a single bandwidth."""
    spread = deviations(contexts, terms.tied)
    count = len(terms.bandwidths)
    if count == len(spread):
        return spread
    return np.full(count, np.exp(np.log(spread).mean()))  # of none, nothing


def _nearest_distance(contexts: FloatArray) -> float:
    """Return the median distance from a context to the nearest other one; 0 if there is none."""
    distinct = np.unique(contexts, axis=0)
    distinct = distinct[evenly(np.arange(len(distinct)), _MOST_DISTINCT)]
    if len(distinct) < 2:
        return 0.0
    away = (distinct - own for own in distinct[evenly(np.arange(len(distinct)), _NEIGHBOURS)])
    nearest = [np.partition(np.einsum("ij,ij->i", each, each), 1)[1] for each in away]
    return math.sqrt(np.median(nearest))


def _of_like_size(counts: Sequence[int]) -> list[list[int]]:
    """Return groups of which the smaller waste little when they are filled up to the largest."""
    stacks: list[list[int]] = []
    for arm in sorted(range(len(counts)), key=lambda arm: -counts[arm]):
        most = counts[stacks[-1][0]] if stacks else 0
        if stacks and most**2 - counts[arm] ** 2 <= _FILLING:
            stacks[-1].append(arm)
        else:
            stacks.append([arm])
    return stacks


def _stacked(arrays: Sequence[FloatArray]) -> FloatArray:
    """Return arrays of like shape as one, filled up with zeros along their first dimension."""
    most = max(map(len, arrays))
    whole = np.zeros((len(arrays), most, *arrays[0].shape[1:]))
    for row, array in zip(whole, arrays, strict=True):
        row[: len(array)] = array
    return whole


def _square_stack(matrices: Sequence[FloatArray]) -> FloatArray:
    """Return square matrices as one array, filled up with zeros."""
    most = max(map(len, matrices))
    whole = np.zeros((len(matrices), most, most))
    for each, matrix in zip(whole, matrices, strict=True):
        each[: len(matrix), : len(matrix)] = matrix
    return whole


def _squared_distances(x: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of each matrix."""
    if x.shape[2] == 1:
        difference = x - x.transpose(0, 2, 1)
        return np.square(difference, out=difference)
    norms = np.einsum("aij,aij->ai", x, x)[:, :, None]
    largest = float(norms.max())
    if not largest < _FAR:
        return np.stack([squared_distances(each, each) for each in x])
    ones = np.ones_like(norms)
    left, right = np.concatenate([x, norms, ones], 2), np.concatenate([-2 * x, ones, norms], 2)
    squared = left @ right.transpose(0, 2, 1)
    squared[squared < _ROUNDING * largest] = 0.0  # the same contexts, up to rounding
    return np.asarray(squared)


_LOGITS = (-7.0, 7.0)
_BANDWIDTHS = (math.log(1e-2), math.log(1e2))  # in units of √p standard deviations over the arms


class Sharing:
    """The part of the search variable that says how alike arms are.

    It holds the logit of the correlation and the logarithms of the features' bandwidths. Arms have
    ``counts`` observations, which come arm after arm.
    """

    def __init__(self, counts: IntArray, features: Features | None = None) -> None:
        self.counts, self.features = counts, features
        self.reference = np.empty(0) if features is None else features.usual_bandwidths
        self.size = 1 + len(self.reference)
        self.bounds = [_LOGITS, *[_BANDWIDTHS] * len(self.reference)]
        self._logit = 0.0 if features is None else FEATURES_LOGIT
        self._firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def start(self) -> FloatArray:
        """Return the most probable point of the prior."""
        return np.append(self._logit, np.zeros(self.size - 1))

    def prior_loss(self, part: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log density of a point, up to a constant, and its slope."""
        away = (part[0] - self._logit) / LOGIT_SPREAD
        loss, slope = 0.5 * away**2, np.array([away / LOGIT_SPREAD])
        if self.size > 1:
            more, slopes = bandwidth_loss(part[1:], TIGHT)
            return loss + more, np.append(slope, slopes)
        return loss, slope

    def alike(self, part: FloatArray) -> Alike:
        """Return the correlations at a point."""
        sharing = 1 / (1 + math.exp(-part[0]))
        if self.features is None:
            return Alike(sharing)
        rows = tuple(map(tuple, self.features.rows.tolist()))
        bandwidths = tuple((self.reference * np.exp(part[1:])).tolist())
        return Alike(sharing, rows, bandwidths, self.features.categories)

    def spread(self, matrix: FloatArray) -> FloatArray:
        """Return a table of arms as one of observations."""
        return np.repeat(np.repeat(matrix, self.counts, axis=0), self.counts, axis=1)

    def slopes(self, part: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the slope of Σ weights · B, both tables of observations."""
        alike = self.alike(part)
        by_arm = np.add.reduceat(np.add.reduceat(weights, self._firsts, 0), self._firsts, 1)
        common = alike.similar * by_arm
        rho = alike.sharing
        slopes = [rho * (1 - rho) * (common.sum() - by_arm.trace())]
        if self.features is not None:
            numbers = len(alike.bandwidths) - self.features.categories
            for place, width in enumerate(alike.bandwidths):
                column = self.features.rows[:, place]
                apart = column[:, None] - column
                if place >= numbers:
                    apart = (apart != 0).astype(np.float64)
                slopes.append(rho * (common * np.square(apart / width)).sum())
        return np.array(slopes)


# Rewards up to which arms may share: the model keeps as many numbers as their square.
MOST_SHARED = 3000
# One factor over all observations takes time in the cube of their number: of the first search,
# and of the last.
_FEW, _MOST = 200, 400
_STEPS, _AGAIN = 25, 6  # from a new start, and from where another search ended
_PROMISING = 1.0  # nats by which arms that share must be better for the last search to be made


class Shared(NamedTuple):
    """The best hyperparameters of arms that share, and how much better they are."""

    found: Hyperparameters
    gain: float  # in nats, over the same kernel with arms that have nothing in common
    rewards: list[FloatArray]  # those used, by arm
    end: tuple[float, ...]  # where the search ended


def shared(
    terms: Terms,
    theta: FloatArray,
    start: Sequence[float] | None,
    data: Data,
    criterion: str,
    features: Features | None,
    limits: Limits | None = None,
) -> Steps[Shared | None]:
    """Return the best fit of arms that share, or None where it is no better than alone.

    ``terms`` and ``theta`` are the best kernel and point for arms that have nothing in common;
    ``start`` is where the last search ended, None if there was none; ``features`` has a row for
    each arm; ``limits`` are those of ``Search``.
    """
    point = np.empty(0) if start is None else np.array(start)
    steps = _STEPS if start is None else _AGAIN
    for most in (_FEW, _MOST) if start is None else (_MOST,):
        part = part_of(data, most, power=1)
        sharing = Sharing(np.array([len(y) for y in part[1]]), features)
        noise = noise_of(part)
        together = Search(terms, part[0], part[1], criterion, sharing, limits, noise)
        single = Search(terms, part[0], part[1], criterion, None, limits, noise)
        alone, own = yield from single.descend(theta, steps)
        if len(point) != len(own) + sharing.size:
            # Of arms alone, with how alike they are: the ratio stays last.
            point = np.concatenate([own[:-1], sharing.start(), own[-1:]])
        loss, point = yield from together.descend(point, steps)
        if loss > alone - (_PROMISING if most == _FEW else 0.0):
            return None
        if sum(map(len, part[1])) == sum(map(len, data[1])):
            break
    found = yield from together.hyperparameters(point)
    return Shared(found, alone - loss, part[1], tuple(point.tolist()))
