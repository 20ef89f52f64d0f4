"""Searches for the best scales of one kernel, by descent from several starting points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Gaussian
from contextgap.kernels.base import Kernel
from contextgap.kernels.stationary import Stationary
from contextgap.tuning.beliefs import SLOPE, TRUST, bandwidth_beliefs, weight_beliefs
from contextgap.tuning.criteria import CRITERIA, Score
from contextgap.tuning.sample import nearest_distance
from contextgap.tuning.terms import Terms

_SHORTEST, _LONGEST = math.log(1e-3), math.log(1e2)  # of a bandwidth, in the search's units
_WEIGHTS = (math.log(1e-4), math.log(1e3))  # of trend and constant part
_RATIOS = (math.log(1e-8), math.log(1e4))
# Where to start: levels of the bandwidths, and ratios of ridge over reward scale.
_RATIO = 1e-2
_STARTS = ((0.0, _RATIO), (0.0, 1.0), (1.0, 10.0), (-1.0, 1.0), (-1.5, _RATIO), (-3.0, _RATIO))
_HOPELESS = 1e12
_PRECISION = 1e-6  # of the loss, relative: thousandths of a nat


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
        The criterion's value and the prior, in nats for all observations used; only differences
        mean anything.
    errors
        Each reward minus its prediction from the other rewards of its arm, one array per arm.
    """

    kernel: Kernel
    ridge: float
    prior_mean: float
    loss: float
    errors: tuple[FloatArray, ...]


class Search:
    """The search for a kernel's scales, from one array of contexts and one of rewards per arm.

    The search variable θ holds the logarithms of the bandwidths, in units of √d standard deviations
    of their column; of slope and offset, where the kernel has them; and of ratio, the ridge over
    the reward scale. No arm's arrays are empty.
    """

    def __init__(
        self,
        terms: Terms,
        contexts: Sequence[FloatArray],
        rewards: Sequence[FloatArray],
        criterion: str,
    ) -> None:
        everything, heard = np.vstack(contexts), np.concatenate(rewards)
        self.terms, self.rewards = terms, list(rewards)
        self.criterion = CRITERIA[criterion]
        self.reference = _reference(everything, len(terms.bandwidths))
        self.shortest = _SHORTEST
        if len(self.reference):
            # In units of the reference and centred: differences of squares then lose nothing where
            # contexts are far from zero.
            centre = everything.mean(axis=0)
            self.contexts = [(x - centre) / self.reference for x in contexts]
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
        self.share = len(np.unique(everything, axis=0)) / len(everything)
        variance = float(heard.var())
        self.guess = variance if variance > 0 else 1.0

    def starts(self) -> list[FloatArray]:
        """Return starting points: some for any data, and the kernel's own scales."""
        starts = [self.start(level, ratio) for level, ratio in _STARTS]
        if len(self.reference):
            starts.append(self.start(np.log(self.terms.bandwidths / self.reference), _RATIO))
        return list({start.tobytes(): start for start in starts}.values())  # some are the same

    def descend(self, start: FloatArray, iterations: int) -> tuple[float, FloatArray]:
        """Return the lowest loss found from a start, and where it is."""
        from scipy.optimize import minimize  # slow to load, and most learners do not need it

        found = minimize(
            self.loss_and_slope,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds(),
            options={"maxiter": iterations, "ftol": _PRECISION},
        )
        return float(found.fun), found.x

    def scales(self, theta: FloatArray) -> Scales:
        """Return the scales at a point."""
        score = self._score(theta)[0]
        if score is None:
            raise ValueError("no setting explains the observations")
        terms = self._terms(theta)
        terms = terms.with_bandwidths(terms.bandwidths * self.reference)
        return Scales(
            kernel=terms.scaled(score.reward_scale),
            ridge=math.exp(theta[-1]) * score.reward_scale,
            prior_mean=score.prior_mean,
            loss=self.share * score.loss + self._beliefs(theta)[0],
            errors=tuple(score.errors),
        )

    def loss_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss including the prior on scales, and its gradient."""
        score, parts = self._score(theta)
        if score is None:
            return _HOPELESS, np.zeros(len(theta))
        slope = np.zeros(len(theta))
        count = len(self.reference)
        for arm, (matrix, steepness) in enumerate(zip(score.slopes, parts, strict=True)):
            place = count
            if count:
                weights = matrix * steepness
                slope[:count] += self._bandwidth_slopes(self.contexts[arm], weights, theta)
            if self.terms.trend is not None:
                slope[place] += math.exp(theta[place]) * np.vdot(matrix, self.trends[arm])
                place += 1
            if self.terms.offset is not None:
                slope[place] += math.exp(theta[place]) * matrix.sum()
            slope[-1] += math.exp(theta[-1]) * matrix.trace()
        loss, prior_slope = self._beliefs(theta)
        return self.share * score.loss + loss, self.share * slope + prior_slope

    def _score(self, theta: FloatArray) -> tuple[Score | None, list[Any]]:
        terms, ratio = self._terms(theta), math.exp(theta[-1])
        covariances, parts = [], []
        for arm, x in enumerate(self.contexts):
            if isinstance(terms.main, Stationary):
                values, steepness = terms.main.with_slopes(x)
            else:
                values, steepness = self.fixed[arm], None
            covariance = values + (terms.offset or 0.0)
            if terms.trend is not None:
                covariance += terms.slope * self.trends[arm]
            covariance[np.diag_indices_from(covariance)] += ratio
            covariances.append(covariance)
            parts.append(steepness)
        return self.criterion(covariances, self.rewards, self.guess, TRUST), parts

    def _bandwidth_slopes(
        self, x: FloatArray, weights: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Σ weights_ik (x_ij − x_kj)² / bandwidth_j², without the differences."""
        squares = 2 * (weights.sum(axis=1) @ x**2 - np.einsum("ij,ij->j", x, weights @ x))
        count = len(self.reference)
        scaled = squares * np.exp(-2 * theta[:count])
        return scaled if count == x.shape[1] else np.array([scaled.sum()])

    def _beliefs(self, theta: FloatArray) -> tuple[float, FloatArray]:
        count, slope = len(self.reference), np.zeros(len(theta))
        loss, slope[count:] = weight_beliefs(
            theta[count:],
            trend=self.terms.trend is not None,
            offset=self.terms.offset is not None,
        )
        if count:
            more, slope[:count] = bandwidth_beliefs(theta[:count])
            loss += more
        return loss, slope

    def _terms(self, theta: FloatArray) -> Terms:
        count = len(self.reference)
        terms = self.terms.with_bandwidths(np.exp(theta[:count]))
        weights = np.exp(theta[count:-1]).tolist()
        if terms.offset is not None:
            terms = replace(terms, offset=weights.pop())
        return replace(terms, slope=weights.pop()) if terms.trend is not None else terms

    def start(self, level: float | FloatArray, ratio: float, offset: float = 0.0) -> FloatArray:
        """Return the point for a level of the bandwidths, a ratio and an offset.

        Level and offset are logarithms; the level is one number or one per bandwidth.
        """
        bandwidths = np.clip(np.full(len(self.reference), level), self.shortest, _LONGEST)
        weights = [] if self.terms.trend is None else [SLOPE]
        weights += [] if self.terms.offset is None else [offset]
        return np.concatenate([bandwidths, weights, [math.log(ratio)]])

    def _bounds(self) -> list[tuple[float, float]]:
        weights = (self.terms.trend is not None) + (self.terms.offset is not None)
        bounds = [(self.shortest, _LONGEST)] * len(self.reference)
        return [*bounds, *[_WEIGHTS] * weights, _RATIOS]


def _reference(contexts: FloatArray, bandwidths: int) -> FloatArray:
    """√d · (standard deviation of each column), or their geometric mean for a single bandwidth."""
    spread = np.asarray(Gaussian.from_contexts(contexts).bandwidth)
    if bandwidths == len(spread):
        return spread
    return np.full(bandwidths, np.exp(np.log(spread).mean()))  # of none, nothing
