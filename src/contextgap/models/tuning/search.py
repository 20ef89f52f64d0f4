"""Searches for the best scales of one kernel, by descent from several starting points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel
from contextgap.kernels.columns import deviations
from contextgap.kernels.stationary import Stationary
from contextgap.models import Alike
from contextgap.models.tuning.beliefs import (
    LOOSE,
    TIGHT,
    TRUST,
    WEIGHT,
    bandwidth_beliefs,
    weight_beliefs,
)
from contextgap.models.tuning.criteria import CRITERIA, Score
from contextgap.models.tuning.sample import nearest_distance
from contextgap.models.tuning.sharing import Sharing
from contextgap.models.tuning.tails import Limits
from contextgap.models.tuning.terms import Terms

_SHORTEST, _LONGEST = math.log(1e-3), math.log(1e2)  # of a bandwidth, in the search's units
_WEIGHTS = (math.log(1e-4), math.log(1e3))  # of trend and constant part
_RATIOS = (math.log(1e-8), math.log(1e4))
# Where to start: levels of the bandwidths, and ratios of ridge over reward scale.
_RATIO = 1e-2
_STARTS = ((0.0, _RATIO), (0.0, 1.0), (1.0, 10.0), (-1.0, 1.0), (-1.5, _RATIO), (-3.0, _RATIO))
_HOPELESS = 1e12
_PRECISION = 1e-6  # of the loss, relative: thousandths of a nat
_SETTLING = 20  # steps of the search for what is learnt from the rewards as they are


@dataclass(frozen=True)
class Scales:
    """Settings learnt from data.

    Parameters
    ----------
    kernel
        The kernel with the bandwidths found, multiplied by the reward scale.
    ridge
        Regularisation: the variance of the noise.
    prior_mean
        The mean reward.
    loss
        The criterion's value and the prior, in nats for all observations used, rewards within the
        limits if there are any; only differences mean anything.
    errors
        Each reward minus its prediction from the other rewards of its arm, one array per arm; or
        from all others, where arms share.
    alike
        The correlations of arms; None if they have nothing in common.
    """

    kernel: Kernel
    ridge: float
    prior_mean: float
    loss: float
    errors: tuple[FloatArray, ...]
    alike: Alike | None = None


class _Part(NamedTuple):
    """A group's kernel values and their slopes; how alike the arms of its observations are.

    ``values`` and ``alike`` are None where arms have nothing in common.
    """

    values: FloatArray | None
    steepness: FloatArray | None
    alike: FloatArray | None


class Search:
    """The search for a kernel's scales, from one array of contexts and one of rewards per arm.

    The search variable θ holds the logarithms of the bandwidths, in units of √d standard deviations
    of their column; of slope and offset, where the kernel has them; what ``Sharing`` says, where
    arms share what they learn; and of ratio, the ridge over the reward scale. No arm's arrays are
    empty. Arms that share are one group of observations, others one group each. Rewards beyond
    ``limits`` are searched with as if they were there.
    """

    def __init__(
        self,
        terms: Terms,
        contexts: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        criterion: str,
        sharing: Sharing | None = None,
        limits: Limits | None = None,
    ) -> None:
        everything, heard = np.vstack(contexts), np.concatenate(rewards)
        self.sharing = sharing
        if sharing is not None:
            contexts, rewards = [everything], [heard]
        self.terms = terms
        self.criterion = CRITERIA[criterion]
        self.reference = _reference(everything, terms)
        self.bandwidth_of = terms.column_of(everything.shape[1])
        self.shortest = _SHORTEST
        if len(self.reference):
            # In units of the reference and centred: differences of squares then lose nothing where
            # contexts are far from zero.
            centre = everything.mean(axis=0)
            unit = self.reference[self.bandwidth_of]
            self.contexts = [(x - centre) / unit for x in contexts]
            # With bandwidths so short that an observation says nothing about its neighbours, a
            # kernel only describes noise, which is what the ridge is for.
            near = 0.5 * nearest_distance(np.vstack(self.contexts))
            self.shortest = max(_SHORTEST, math.log(near)) if near > 0 else _SHORTEST
        else:
            self.contexts = list(contexts)
            self.fixed = [terms.main(x, x) for x in contexts]
        if terms.trend is not None:
            self.trends = [terms.trend(x, x) for x in contexts]
        # Bandwidths are learnt from differences between contexts. Rewards of several arms, or of
        # several visits, at one context count as one, so that they do not outweigh the prior.
        # Not so in tables, where contexts of few categories come again by themselves.
        numbers_alone = terms.tied is None
        distinct = len(np.unique(everything, axis=0)) if numbers_alone else len(everything)
        self.share = distinct / len(everything)
        self.apart = LOOSE if limits is None and len(np.unique(heard)) > 2 else TIGHT
        self._hear(rewards)
        self.as_they_are: Search | None = None
        if limits is not None:
            self.as_they_are = copy(self)
            self._hear([np.clip(y, *limits) for y in rewards])

    def _hear(self, rewards: Sequence[FloatArray]) -> None:
        self.rewards = list(rewards)
        everything = np.concatenate(self.rewards)
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
        """Return starting points: some for any data, and the kernel's own scales."""
        starts = [self.start(level, ratio) for level, ratio in _STARTS]
        if len(self.reference):
            starts.append(self.start(np.log(self.terms.bandwidths / self.reference), _RATIO))
        return list({start.tobytes(): start for start in starts}.values())  # some are the same

    def descend(
        self, start: FloatArray, iterations: int, *, keep: int = 0
    ) -> tuple[float, FloatArray]:
        """Return the lowest loss found from a start, and where it is.

        The first ``keep`` entries stay as they are.
        """
        from scipy.optimize import minimize  # slow to load, and most learners do not need it

        kept = [(value, value) for value in start[:keep].tolist()]
        found = minimize(
            self.loss_and_slope,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*kept, *self._bounds()[keep:]],
            options={"maxiter": iterations, "ftol": _PRECISION},
        )
        return float(found.fun), found.x

    def scales(self, theta: FloatArray) -> Scales:
        """Return the scales at a point; those for rewards as they are, if there are limits."""
        if self.as_they_are is not None:
            settled = self.as_they_are.settled(theta)
            return replace(self.as_they_are.scales(settled), loss=self.loss(theta))
        score = self._score(theta)[0]
        if score is None:
            raise ValueError("no setting explains the observations")
        terms = self._terms(theta)
        terms = terms.with_bandwidths(terms.bandwidths * self.reference)
        errors, alike = score.detail().errors, None
        if self.sharing is not None:
            errors = np.split(errors[0], np.cumsum(self.sharing.counts)[:-1])
            alike = self.sharing.alike(theta[self._alike])
        return Scales(
            kernel=terms.scaled(score.reward_scale),
            ridge=math.exp(theta[-1]) * score.reward_scale,
            prior_mean=score.prior_mean,
            loss=self.share * score.loss + self._beliefs(theta)[0],
            errors=tuple(errors),
            alike=alike,
        )

    def settled(self, theta: FloatArray) -> FloatArray:
        """Return the best point with the same bandwidths."""
        return self.descend(theta, _SETTLING, keep=len(self.reference))[1]

    def with_terms(self, terms: Terms) -> Search:
        """Return the search for another kernel with as many bandwidths, prepared as this one is.

        Only a kernel that has this one's trend, or none, can be searched for.
        """
        other = copy(self)
        other.terms = terms
        if self.as_they_are is not None:
            other.as_they_are = self.as_they_are.with_terms(terms)
        return other

    def loss(self, theta: FloatArray) -> float:
        """Return the loss including the prior on scales, for a third of the time of its slope."""
        score, _ = self._score(theta)
        return _HOPELESS if score is None else self.share * score.loss + self._beliefs(theta)[0]

    def loss_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss including the prior on scales, and its gradient."""
        score, parts = self._score(theta)
        if score is None:
            return _HOPELESS, np.zeros(len(theta))
        slope = np.zeros(len(theta))
        count = len(self.reference)
        for group, (matrix, part) in enumerate(zip(score.detail().slopes, parts, strict=True)):
            inner = matrix if part.alike is None else matrix * part.alike
            place = count
            if part.steepness is not None:
                weights = inner * part.steepness
                slope[:count] += self._bandwidth_slopes(self.contexts[group], weights, theta)
            if self.terms.trend is not None:
                slope[place] += math.exp(theta[place]) * np.vdot(inner, self.trends[group])
                place += 1
            if self.terms.offset is not None:
                slope[place] += math.exp(theta[place]) * inner.sum()
            if self.sharing is not None and part.values is not None:
                slope[self._alike] += self.sharing.slopes(theta[self._alike], matrix * part.values)
            slope[-1] += math.exp(theta[-1]) * matrix.trace()
        loss, prior_slope = self._beliefs(theta)
        return self.share * score.loss + loss, self.share * slope + prior_slope

    def _score(self, theta: FloatArray) -> tuple[Score | None, list[_Part]]:
        terms, ratio = self._terms(theta), math.exp(theta[-1])
        alike = None
        if self.sharing is not None:
            by_arm = self.sharing.alike(theta[self._alike]).matrix(len(self.sharing.counts))
            alike = self.sharing.spread(by_arm)
        covariances, parts = [], []
        for group, x in enumerate(self.contexts):
            if isinstance(terms.main, Stationary):
                values, steepness = terms.main.with_slopes(x)
            else:
                values, steepness = self.fixed[group], None
            values = values + (terms.offset or 0.0)
            if terms.trend is not None:
                values += terms.slope * self.trends[group]
            covariance = values if alike is None else values * alike
            covariance.flat[:: len(x) + 1] += ratio  # the diagonal
            covariances.append(covariance)
            parts.append(_Part(None if alike is None else values, steepness, alike))
        return self.criterion(covariances, self.rewards, self.guess, TRUST), parts

    def _bandwidth_slopes(
        self, x: FloatArray, weights: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Σ weights_ik (x_ij − x_kj)² / bandwidth_j², without the differences."""
        squares = 2 * (weights.sum(axis=1) @ x**2 - np.einsum("ij,ij->j", x, weights @ x))
        scaled = squares * np.exp(-2 * theta)[self.bandwidth_of]
        return np.bincount(self.bandwidth_of, scaled).astype(np.float64)

    def _beliefs(self, theta: FloatArray) -> tuple[float, FloatArray]:
        count, alike = len(self.reference), self._alike
        weights = np.append(theta[count : alike.start], theta[-1])
        slope = np.zeros(len(theta))
        loss, slopes = weight_beliefs(weights)
        slope[count : alike.start], slope[-1] = slopes[:-1], slopes[-1]
        if self.sharing is not None:
            more, slope[alike] = self.sharing.beliefs(theta[alike])
            loss += more
        if count:
            more, slope[:count] = bandwidth_beliefs(theta[:count], self.apart)
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
        """Return the point for a level of the bandwidths, a ratio and an offset.

        Level and offset are logarithms; the level is one number or one per bandwidth.
        """
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
