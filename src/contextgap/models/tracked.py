"""The model for studies: posteriors followed at a fixed set of points.

When all contexts are known beforehand, keep for each arm the rows V = L⁻¹K(arm's points, points).
Observing reward r at point x adds one row and updates mean and variance at every point:

    row = (k(x, ·) − V[:, x]ᵀV) / d      d = √(variance[x] + ridge)
    mean += row · (r − mean[x]) / d      variance −= row²

One matrix–vector product per step thus gives the exact posterior at every context still to explore
and at every context to evaluate on: the whole regret curve for the price of one point of it.
"""

from __future__ import annotations

import math

import numpy as np

from contextgap.arrays import FloatArray
from contextgap.models.arm import pivot, root
from contextgap.models.base import Posterior


class TrackedModel:
    """Exact posteriors of all arms at fixed points, of which the first are explored in order.

    Parameters
    ----------
    gram
        Kernel values between the points to explore and all points, shape (steps, points); the
        points to explore come first among the points.
    diagonal
        k(x, x) at every point.
    ridge
        Regularisation.
    n_arms
        Number of arms.
    prior_mean
        A number, or ``"auto"`` for the average reward seen.
    """

    def __init__(
        self,
        gram: FloatArray,
        diagonal: FloatArray,
        ridge: float,
        n_arms: int,
        prior_mean: float | str = 0.0,
    ) -> None:
        points = gram.shape[1]
        self.ridge = ridge
        self.prior_mean = prior_mean
        self.steps = 0
        self.pulls = np.zeros(n_arms, dtype=np.intp)
        self._gram = gram
        self._diagonal = diagonal
        self._rows = [np.empty((16, points)) for _ in range(n_arms)]
        self._fit = np.zeros((n_arms, points))  # the mean for prior mean 0
        self._variance = np.tile(diagonal, (n_arms, 1))
        # How strongly the rewards override the prior mean: the fit to rewards that are all 1.
        self._ones = np.zeros((n_arms, points)) if prior_mean != 0 else None
        self._gain = np.zeros(n_arms)
        self._reward_sum = 0.0

    def prior(self) -> float:
        """Return the prior mean as a number."""
        if isinstance(self.prior_mean, str):
            return self._reward_sum / self.steps if self.steps else 0.0
        return self.prior_mean

    def posterior_now(self) -> Posterior:
        """Return the posterior of all arms at the point explored next, shape (arms,)."""
        return self._posterior(self.steps)

    def posterior_from(self, first: int) -> Posterior:
        """Return the posterior at points ``first`` and up, shape (points, arms)."""
        return self._posterior(slice(first, None))

    def observe(self, arm: int, reward: float) -> None:
        """Take in the reward of an arm at the next point; go on to the point after it."""
        now, size = self.steps, int(self.pulls[arm])
        # Points explored already are never asked about again: rows are kept from `now` on.
        rows = self._reserve(arm, size + 1)[:size, now:]
        d = pivot(float(self._variance[arm, now]), self.ridge, self._diagonal[now], size)
        row = self._gram[now, now:] - rows[:, 0] @ rows
        row /= d
        self._rows[arm][size, now:] = row
        self._fit[arm, now:] += row * ((reward - self._fit[arm, now]) / d)
        if self._ones is not None:
            self._ones[arm, now:] += row * ((1.0 - self._ones[arm, now]) / d)
        self._variance[arm, now:] -= np.square(row, out=row)
        self._gain[arm] += math.log(d) - 0.5 * math.log(self.ridge)
        self._reward_sum += reward
        self.pulls[arm] += 1
        self.steps += 1

    def _posterior(self, points: int | slice) -> Posterior:
        mean = self._fit[:, points].T
        if self._ones is not None:
            mean = mean + self.prior() * (1.0 - self._ones[:, points].T)
        std = root(self._variance[:, points].T.copy())
        return Posterior(mean.copy(), std, self._gain.copy(), self.ridge)

    def _reserve(self, arm: int, size: int) -> FloatArray:
        rows = self._rows[arm]
        if size > len(rows):
            grown = np.empty((2 * len(rows), rows.shape[1]))
            grown[: len(rows)] = rows
            self._rows[arm] = rows = grown
        return rows
