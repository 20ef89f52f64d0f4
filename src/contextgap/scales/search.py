"""Scales from the data: bandwidths, ridge, prior mean and reward scale, without a hold-out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.arrays import FloatArray, IntArray
from contextgap.kernels import Constant, Gaussian, Kernel, Matern
from contextgap.kernels.stationary import Stationary
from contextgap.scales.criteria import CRITERIA, Score
from contextgap.scales.shape import Shape

# What is believed of settings before anything was seen, as medians and spreads of logarithms. A
# handful of rewards cannot tell a rough function from noise; these decide then, and are overruled
# by some dozens.
_LEVEL_SPREAD = 2.5  # of all bandwidths together, around √d · (standard deviation of the column)
_APART = 0.5  # of single bandwidths around the others'
_OFFSET_SPREAD = 2.0  # of the constant part, around 1
_RATIO, _RATIO_SPREAD = math.log(1e-2), 3.0  # of the ridge over the reward scale
_TRUST = 1.0  # observations that the first guess of the reward scale is worth
_LOWEST, _HIGHEST = math.log(1e-3), math.log(1e2)  # of a bandwidth over √d · deviation
_OFFSETS = (math.log(1e-4), math.log(1e3))
_RATIOS = (math.log(1e-8), math.log(1e2))
_STARTS = (0.0, -1.5, -3.0)  # levels to start from
_HOPELESS = 1e12


@dataclass(frozen=True)
class Scales:
    """Settings learnt from data.

    Parameters
    ----------
    kernel
        With the bandwidths, and times the reward scale.
    ridge
        Regularisation: the variance of the noise.
    prior_mean
        The mean reward.
    loss
        The criterion's value, in nats for all observations used; only differences mean anything.
    """

    kernel: Kernel
    ridge: float
    prior_mean: float
    loss: float


def default_kernels(dimension: int) -> list[Kernel]:
    """Return the kernels of which one is chosen, and its scales learnt, where none is given.

    Smooth functions, or rougher ones, whichever explains the rewards better; a bandwidth for every
    dimension, since units differ; and a level of its own for every arm.
    """
    each = (1.0,) * dimension
    return [Gaussian(each) + Constant(), Matern(each, 2.5) + Constant()]


def learn_scales(
    kernel: Kernel,
    contexts: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    criterion: str = "evidence",
    most: int = 1200,
) -> Scales:
    """Return the scales that explain the observations best.

    Parameters
    ----------
    kernel
        Its bandwidths are where the search starts, among other places; kernels that have none
        get a factor.
    contexts, rewards
        One array of each per arm; empty for arms without observations.
    criterion
        "evidence" or "loo".
    most
        How many observations to look at; of more, as many of each arm, evenly over time. An
        observation made twice, with the same reward to the last digit, counts once: noise that
        does not change from one visit to the next looks like none, and functions then like noise.
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {sorted(CRITERIA)}, got {criterion!r}")
    each = most // max(1, len(rewards))
    kept = [_kept(x, y, each) for x, y in zip(contexts, rewards, strict=True)]
    pairs = [(x[k], y[k]) for x, y, k in zip(contexts, rewards, kept, strict=True) if len(k)]
    search = _Search(Shape.of(kernel), [x for x, _ in pairs], [y for _, y in pairs], criterion)
    return search.run()


class _Search:
    def __init__(
        self,
        shape: Shape,
        contexts: list[FloatArray],
        rewards: list[FloatArray],
        criterion: str,
    ) -> None:
        everything, heard = np.vstack(contexts), np.concatenate(rewards)
        self.shape, self.rewards = shape, rewards
        self.criterion = CRITERIA[criterion]
        self.reference = _reference(everything, len(shape.bandwidths))
        if len(self.reference):
            # In units of the reference and centred: differences of squares then lose nothing where
            # contexts are far from zero.
            centre = everything.mean(axis=0)
            self.contexts = [(x - centre) / self.reference for x in contexts]
        else:
            self.contexts = contexts
            self.fixed = [shape.kernel(x, x) for x in contexts]
        variance = float(heard.var())
        self.guess = variance if variance > 0 else 1.0

    def run(self) -> Scales:
        from scipy.optimize import minimize  # slow to load, and most learners do without

        tries = [self._start(level) for level in _STARTS]
        if len(self.reference):
            tries.append(self._start(None))
        first = min(tries, key=lambda theta: self.loss_and_slope(theta)[0])
        found = minimize(
            self.loss_and_slope,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds(),
            options={"maxiter": 60},
        )
        score = self._score(found.x)[0]
        if score is None:
            raise ValueError("no setting explains the observations")
        shape = self._shape(found.x)
        shape = shape.with_bandwidths(shape.bandwidths * self.reference)
        ridge = math.exp(found.x[-1]) * score.reward_scale
        return Scales(shape.scaled(score.reward_scale), ridge, score.prior_mean, float(found.fun))

    def loss_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss with what was believed beforehand, and its gradient."""
        score, parts = self._score(theta)
        if score is None:
            return _HOPELESS, np.zeros(len(theta))
        slope = np.zeros(len(theta))
        count = len(self.reference)
        for x, matrix, steepness in zip(self.contexts, score.slopes, parts, strict=True):
            if count:
                slope[:count] += self._bandwidth_slopes(x, matrix * steepness, theta)
            if self.shape.offset is not None:
                slope[count] += math.exp(theta[count]) * matrix.sum()
            slope[-1] += math.exp(theta[-1]) * matrix.trace()
        loss, prior_slope = self._beliefs(theta)
        return score.loss + loss, slope + prior_slope

    def _score(self, theta: FloatArray) -> tuple[Score | None, list[Any]]:
        shape, ratio = self._shape(theta), math.exp(theta[-1])
        covariances, parts = [], []
        for place, x in enumerate(self.contexts):
            if isinstance(shape.kernel, Stationary):
                values, steepness = shape.kernel.with_slopes(x)
            else:
                values, steepness = self.fixed[place], None
            covariance = values + (shape.offset or 0.0)
            covariance[np.diag_indices_from(covariance)] += ratio
            covariances.append(covariance)
            parts.append(steepness)
        return self.criterion(covariances, self.rewards, self.guess, _TRUST), parts

    def _bandwidth_slopes(
        self, x: FloatArray, weights: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Σ weights_ik (x_ij − x_kj)² / bandwidth_j², without the differences."""
        squares = 2 * (weights.sum(axis=1) @ x**2 - np.einsum("ij,ij->j", x, weights @ x))
        count = len(self.reference)
        scaled = squares * np.exp(-2 * theta[:count])
        return scaled if count == x.shape[1] else np.array([scaled.sum()])

    def _beliefs(self, theta: FloatArray) -> tuple[float, FloatArray]:
        slope = np.zeros(len(theta))
        loss = 0.0
        count = len(self.reference)
        if count:
            level = theta[:count].mean()
            apart = theta[:count] - level
            loss += 0.5 * (level / _LEVEL_SPREAD) ** 2 + 0.5 * (apart @ apart) / _APART**2
            slope[:count] = level / (count * _LEVEL_SPREAD**2) + apart / _APART**2
        if self.shape.offset is not None:
            loss += 0.5 * (theta[count] / _OFFSET_SPREAD) ** 2
            slope[count] = theta[count] / _OFFSET_SPREAD**2
        away = theta[-1] - _RATIO
        loss += 0.5 * (away / _RATIO_SPREAD) ** 2
        slope[-1] = away / _RATIO_SPREAD**2
        return loss, slope

    def _shape(self, theta: FloatArray) -> Shape:
        count = len(self.reference)
        shape = self.shape.with_bandwidths(np.exp(theta[:count]))
        return shape if shape.offset is None else Shape(shape.kernel, math.exp(theta[count]))

    def _start(self, level: float | None) -> FloatArray:
        """A point to start from: all bandwidths at one level, or as the kernel has them."""
        if level is None:
            bandwidths = np.log(self.shape.bandwidths / self.reference)
            bandwidths = np.clip(bandwidths, _LOWEST, _HIGHEST)
        else:
            bandwidths = np.full(len(self.reference), level)
        offset = [] if self.shape.offset is None else [0.0]
        return np.concatenate([bandwidths, offset, [_RATIO]])

    def _bounds(self) -> list[tuple[float, float]]:
        bounds = [(_LOWEST, _HIGHEST)] * len(self.reference)
        if self.shape.offset is not None:
            bounds.append(_OFFSETS)
        return [*bounds, _RATIOS]


def _reference(contexts: FloatArray, bandwidths: int) -> FloatArray:
    """√d · (standard deviation of each column), or their geometric mean for a single bandwidth."""
    spread = np.asarray(Gaussian.from_contexts(contexts).bandwidth)
    if bandwidths == len(spread):
        return spread
    return np.full(bandwidths, np.exp(np.log(spread).mean()))  # of none, nothing


def _kept(contexts: FloatArray, rewards: FloatArray, most: int) -> IntArray:
    """Return the places of observations that differ, at most so many, evenly over time."""
    if not len(rewards):
        return np.empty(0, dtype=np.intp)
    both = np.column_stack([contexts, rewards])
    places = np.sort(np.unique(both, axis=0, return_index=True)[1])
    if len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).round().astype(np.intp)]
    return np.asarray(places)
