"""The textbook model: slow and obviously right; every other model is compared with it.

All observations of all arms are one Gaussian process over pairs of a context and an arm, with
covariance k(x, x')·alike(a, a'); arms that have nothing in common are ``alike`` only to themselves.
Every question solves the full linear system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve, solve_triangular

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.base import (
    NOTHING_PENDING,
    History,
    KeepsHistory,
    LeftOut,
    Model,
    Pending,
    Posterior,
    SharedSupport,
    Support,
)
from contextgap.models.observations import Observations


class DenseModel(Model):
    """Solves the full linear system every time; constructed as every ``Model``."""

    kind = "test: dense"

    def alike(self, one: IntArray, two: IntArray) -> FloatArray:
        """Return how similar arms are, shape (one, two)."""
        return np.asarray(one[:, None] == two, dtype=np.float64)

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        del features
        self.observed.add_arm()

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        self.observed.append(context, arm, reward, noise)

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        self.observed.extend(contexts, np.asarray(arms), rewards, noise)

    def mark(self) -> int:
        """Return the number of observations."""
        return len(self)

    def rewind(self, mark: int) -> None:
        """Forget all later observations."""
        self.observed.truncate(mark)

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return ½ ln det(I + K/ridge) of each arm's own observations."""
        grams = [self.kernel(x, x) if len(x) else np.empty((0, 0)) for x in self._contexts_of(arms)]
        noises = [self.ridge + self.observed.noise[self.observed.places(arm)] for arm in arms]
        whole = zip(grams, noises, strict=True)
        return np.array([np.linalg.slogdet(np.eye(len(k)) + k / n)[1] / 2 for k, n in whole])

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        points = np.atleast_2d(contexts)
        mean, std = np.empty((2, len(points), len(arms)))
        for column, arm in enumerate(arms):
            own = np.full(len(points), arm)
            mean[:, column] = self.prior() + self._weights() @ self._cross(points, own)
            variance = self._covariance(points, own, points, own, pending).diagonal()
            std[:, column] = np.sqrt(np.maximum(variance, 0))
        covariance = self._between(points, arms, pending) if self.shares else None
        if contexts.ndim == 1:
            mean, std = mean[0], std[0]
            covariance = None if covariance is None else covariance[0]
        gain = self.information_gain(arms)
        return Posterior(mean, std, gain, self.ridge, self._regressions, covariance)

    def moves(
        self,
        contexts: FloatArray,
        arm: int,
        points: FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> FloatArray:
        tried = np.full(len(contexts), arm)
        variance = self._covariance(contexts, tried, contexts, tried, pending).diagonal()
        moved = range(self.n_arms) if self.shares else [arm]
        found = [
            self._covariance(points, np.full(len(points), other), contexts, tried, pending)
            for other in moved
        ]
        steps = np.stack(found, axis=-1) / np.sqrt(variance + self.ridge)[:, None]
        return steps if self.shares else steps[..., 0]

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        """Refit without each observation, and others like it."""
        log, rows, error = self.observed, [], np.empty(len(places))
        for i, (place, count) in enumerate(zip(places.tolist(), visits.tolist(), strict=True)):
            context, arm = log.contexts[place], int(log.arms[place])
            same = (log.contexts == context).all(axis=1) & (log.arms == arm)
            gone = np.flatnonzero(same) if count > 1 else np.array([place])
            kept = np.delete(np.arange(len(self)), gone)
            model = type(self)(self.kernel, self.ridge, self.n_arms, self.prior())
            if len(kept):
                told = log.contexts[kept], log.arms[kept], log.rewards[kept], log.noise[kept]
                model.observe_many(*told)
            rows.append(model.posterior(context, arms))
            error[i] = log.rewards[place] - model.posterior(context, [arm]).mean[0]
        mean, std = (np.array([getattr(row, name) for row in rows]) for name in ("mean", "std"))
        gain = self.information_gain(arms)
        covariance = np.array([row.covariance for row in rows]) if self.shares else None
        posterior = Posterior(mean, std, gain, self.ridge, self._regressions, covariance)
        return LeftOut(posterior, error)

    def sums(
        self, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        points = np.repeat(contexts, len(arms), axis=0)
        whose = np.tile(np.asarray(arms, dtype=np.intp), len(contexts))
        flat = weights.reshape(len(weights), -1)
        covariance = self._covariance(points, whose, points, whose, NOTHING_PENDING)
        variance = np.einsum("ki,ij,kj->k", flat, covariance, flat)
        moves = flat @ self._cross(points, whose).T
        return variance, np.asarray(solve(self._noisy(), moves.T).T) if len(self) else moves

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        similar = self.alike(self.observed.arms, np.asarray(arms, dtype=np.intp))
        return [int(count) for count in np.count_nonzero(similar, axis=0)]

    def supports(self, arms: Sequence[int]) -> list[Support]:
        """Return the arrays that determine each arm's posterior.

        With s the similarities of observed arms to this one, v = L⁻¹·diag(s)·k, so that the factor
        to solve with is diag(s)⁻¹·L.
        """
        found = []
        for arm in arms:
            similar = self.alike(self.observed.arms, np.array([arm]))[:, 0]
            own = np.flatnonzero(similar)
            similar, rewards = similar[own], self.observed.rewards[own] - self.prior()
            noisy = self._noisy()[np.ix_(own, own)]
            lower = cholesky(noisy, lower=True) if len(own) else noisy
            weights = similar * solve(noisy, rewards, assume_a="pos") if len(own) else rewards
            packed = (lower / similar[:, None])[np.tril_indices(len(own))]
            innovations = None
            if isinstance(self, KeepsHistory):
                innovations = rewards
                if len(own):
                    innovations = solve_triangular(lower, rewards, lower=True)
            points = self.observed.contexts[own]
            gain = float(self.information_gain([arm])[0])
            found.append(Support(points, weights, ((1, packed),), gain, innovations))
        return found

    def shared_support(self, arms: Sequence[int]) -> SharedSupport | None:
        if not self.shares:
            return None
        every, chosen = np.arange(self.n_arms), np.asarray(arms, dtype=np.intp)
        lower = cholesky(self._noisy(), lower=True) if len(self) else np.empty((0, 0))
        centred = self.observed.rewards - self.prior()
        return SharedSupport(
            points=self.observed.contexts,
            whose=self.observed.arms,
            alike=self.alike(chosen, every),
            among=self.alike(chosen, chosen),
            factor=lower[np.tril_indices(len(self))],
            innovations=solve_triangular(lower, centred, lower=True) if len(self) else centred,
            information_gain=float(self.information_gain([0])[0]),
        )

    def snapshot(self) -> Self:
        copy = type(self)(self.kernel, self.ridge, 0, self.prior_mean)
        copy.observed = self.observed.snapshot()
        return copy

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.observed.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.observed = Observations.restored(arrays, self.n_arms)

    @property
    def _regressions(self) -> int:
        return 1 if self.shares else self.n_arms

    def _between(self, points: FloatArray, arms: Sequence[int], pending: Pending) -> FloatArray:
        """Covariances of arms at each point, shape (points, arms, arms)."""
        whose = np.asarray(arms, dtype=np.intp)
        tables = []
        for point in points:
            same = np.tile(point, (len(whose), 1))
            tables.append(self._covariance(same, whose, same, whose, pending))
        return np.array(tables).reshape(len(points), len(whose), len(whose))

    def _contexts_of(self, arms: Sequence[int]) -> list[FloatArray]:
        return [self.observed.contexts[self.observed.places(arm)] for arm in arms]

    def _prior_covariance(
        self, x: FloatArray, a: IntArray, y: FloatArray, b: IntArray
    ) -> FloatArray:
        if not len(x) or not len(y):
            return np.zeros((len(x), len(y)))
        return np.asarray(self.kernel(x, y) * self.alike(a, b))

    def _noisy(self) -> FloatArray:
        seen, arms = self.observed.contexts, self.observed.arms
        noise = np.diag(self.ridge + self.observed.noise)
        return self._prior_covariance(seen, arms, seen, arms) + noise

    def _weights(self) -> FloatArray:
        rewards = self.observed.rewards - self.prior()
        return np.asarray(solve(self._noisy(), rewards, assume_a="pos")) if len(self) else rewards

    def _cross(self, points: FloatArray, arms: IntArray) -> FloatArray:
        return self._prior_covariance(self.observed.contexts, self.observed.arms, points, arms)

    def _covariance(
        self, x: FloatArray, a: IntArray, y: FloatArray, b: IntArray, pending: Pending
    ) -> FloatArray:
        """Posterior covariances, pending picks counted as made."""
        waiting = [(context, arm) for arm, contexts in pending.items() for context in contexts]
        seen = self.observed.contexts.reshape(-1, x.shape[1])
        seen = np.vstack([seen, *(context for context, _ in waiting)])
        late = np.array([arm for _, arm in waiting], dtype=np.intp)
        arms = np.concatenate([self.observed.arms, late])
        prior = self._prior_covariance(x, a, y, b)
        if not len(seen):
            return prior
        noise = self.ridge + np.concatenate([self.observed.noise, np.zeros(len(late))])
        noisy = self._prior_covariance(seen, arms, seen, arms) + np.diag(noise)
        left, right = (self._prior_covariance(seen, arms, *pair) for pair in ((x, a), (y, b)))
        return np.asarray(prior - left.T @ solve(noisy, right, assume_a="pos"))


class DenseHistoryModel(DenseModel, KeepsHistory):
    """A dense model that refits every step for its history."""

    kind = "test: dense with history"

    def history(self, contexts: FloatArray, arms: Sequence[int], since: int) -> History:
        log, tables = self.observed, []
        for step in range(since, len(self) + 1):
            model = type(self)(self.kernel, self.ridge, self.n_arms, self.prior())
            if step:
                told = log.contexts[:step], log.arms[:step], log.rewards[:step], log.noise[:step]
                model.observe_many(*told)
            tables.append(model.posterior(contexts, arms))
        states = [
            Posterior(
                np.array([table.mean[:, i] for table in tables]),
                np.array([table.std[:, i] for table in tables]),
                np.array([[table.information_gain[i]] for table in tables]),
                self.ridge,
                self._regressions,
            )
            for i in range(len(arms))
        ]
        steps = np.tile(np.arange(len(tables))[:, None], (1, len(arms)))
        covariance = np.array([table.covariance for table in tables]) if self.shares else None
        return History(states, steps, covariance)
