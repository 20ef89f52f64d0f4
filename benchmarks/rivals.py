"""The other ways of doing the same thing, for the benchmarks to compare with."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel


class ExplicitInverse:
    """Contextual-Gap the straightforward way, a stand-in for the authors' code.

    Per arm an explicit inverse of K + ridge·I, updated by rank one, and one call of scikit-learn's
    ``rbf_kernel`` per arm and step.
    """

    def __init__(self, n_arms: int, bandwidth: float, ridge: float) -> None:
        self.gamma, self.ridge = 0.5 / bandwidth**2, ridge
        self.contexts = [None] * n_arms
        self.rewards = [None] * n_arms
        self.inverse = [None] * n_arms

    def load(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Take in everything at once; not timed."""
        for arm in range(len(self.contexts)):
            x = contexts[arms == arm]
            self.contexts[arm], self.rewards[arm] = x, rewards[arms == arm]
            gram = rbf_kernel(x, gamma=self.gamma)
            self.inverse[arm] = np.linalg.inv(gram + self.ridge * np.eye(len(x)))

    def ask(self, context: np.ndarray) -> int:
        mean, std = np.array([self._posterior(arm, context) for arm in range(len(self.contexts))]).T
        upper, lower = mean + std, mean - std
        gap = [max(np.delete(upper, a)) - lower[a] for a in range(len(mean))]
        leader = int(np.argmin(gap))
        challenger = max((a for a in range(len(mean)) if a != leader), key=upper.__getitem__)
        return challenger if std[challenger] > std[leader] else leader

    def tell(self, context: np.ndarray, arm: int, reward: float) -> None:
        k = rbf_kernel(self.contexts[arm], context[None], gamma=self.gamma)
        column = self.inverse[arm] @ k
        pivot = 1.0 + self.ridge - float(k[:, 0] @ column[:, 0])
        grown = np.block(
            [
                [self.inverse[arm] + column @ column.T / pivot, -column / pivot],
                [-column.T / pivot, np.ones((1, 1)) / pivot],
            ]
        )
        self.inverse[arm] = grown
        self.contexts[arm] = np.vstack([self.contexts[arm], context])
        self.rewards[arm] = np.append(self.rewards[arm], reward)

    def _posterior(self, arm: int, context: np.ndarray) -> tuple[float, float]:
        k = rbf_kernel(self.contexts[arm], context[None], gamma=self.gamma)[:, 0]
        weights = self.inverse[arm] @ k
        return float(weights @ self.rewards[arm]), float(np.sqrt(max(1.0 - k @ weights, 0.0)))


class RefitRegressors:
    """One scikit-learn regressor per arm, refitted (hyper-parameters fixed) for every ask."""

    def __init__(self, bandwidth: float, ridge: float) -> None:
        self.bandwidth, self.ridge = bandwidth, ridge

    def load(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        self.data = [(contexts[arms == a], rewards[arms == a]) for a in np.unique(arms)]

    def ask(self, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answers = []
        for x, y in self.data:
            model = GaussianProcessRegressor(
                RBF(self.bandwidth), alpha=self.ridge, optimizer=None
            ).fit(x, y)
            answers.append(model.predict(context[None], return_std=True))
        mean, std = np.array(answers)[:, :, 0].T
        return mean, std
