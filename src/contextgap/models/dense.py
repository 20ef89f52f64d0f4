"""The textbook model: slow and obviously right, the oracle for the tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.base import Posterior


class DenseModel:
    """Solve the full linear system for every question.

    Parameters
    ----------
    kernel
        Similarity of contexts.
    ridge
        Regularisation.
    n_arms
        Number of arms to start with.
    prior_mean
        A number, or ``"auto"`` for the average reward seen.
    """

    def __init__(
        self, kernel: Kernel, ridge: float, n_arms: int, prior_mean: float | str = 0.0
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.prior_mean = prior_mean
        self._contexts: list[list[FloatArray]] = [[] for _ in range(n_arms)]
        self._rewards: list[list[float]] = [[] for _ in range(n_arms)]

    def add_arm(self) -> None:
        """Add an arm without observations."""
        self._contexts.append([])
        self._rewards.append([])

    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        """Take in one reward."""
        self._contexts[arm].append(context)
        self._rewards[arm].append(reward)

    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards."""
        for context, arm, reward in zip(contexts, arms, rewards, strict=True):
            self.observe(context, int(arm), float(reward))

    def posterior(self, contexts: FloatArray, arms: Sequence[int]) -> Posterior:
        """Return the posterior of ``arms`` at every row of ``contexts``."""
        columns = [self._one_arm(contexts, arm) for arm in arms]
        mean, std, gain = (np.stack(values, axis=-1) for values in zip(*columns, strict=True))
        return Posterior(mean, std, gain, self.ridge, len(self._rewards))

    def _one_arm(self, contexts: FloatArray, arm: int) -> tuple[FloatArray, FloatArray, np.float64]:
        prior = self._prior()
        variance = self.kernel.diagonal(contexts)
        if not self._rewards[arm]:
            return np.full(len(contexts), prior), np.sqrt(variance), np.float64(0)
        seen = np.array(self._contexts[arm])
        gram = self.kernel(seen, seen)
        cross = self.kernel(seen, contexts)
        weights = solve(gram + self.ridge * np.eye(len(seen)), cross, assume_a="pos")
        mean = prior + weights.T @ (np.array(self._rewards[arm]) - prior)
        variance = np.maximum(variance - (cross * weights).sum(axis=0), 0)
        gain = np.linalg.slogdet(np.eye(len(seen)) + gram / self.ridge)[1] / 2
        return mean, np.sqrt(variance), gain

    def _prior(self) -> float:
        if isinstance(self.prior_mean, str):
            seen = [reward for rewards in self._rewards for reward in rewards]
            return float(np.mean(seen)) if seen else 0.0
        return self.prior_mean
