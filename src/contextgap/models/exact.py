"""The working model: exact posteriors from growing Cholesky factors, one per arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.answers import Bounds, History, LeftOut, Posterior, Support
from contextgap.models.arm import Arm, pivot, root
from contextgap.models.base import NOTHING_PENDING, KeepsHistory, Model, Pending
from contextgap.models.bounds import bounds
from contextgap.models.follower import ExactFollower, starts_with
from contextgap.models.left_out import left_out
from contextgap.models.observations import Observations


class _Asked(NamedTuple):
    """Results for the last context asked about, kept because tell usually follows ask."""

    context: bytes
    solved: dict[int, FloatArray]  # L⁻¹k by arm, assumed observations included
    prior_variance: float


class ExactModel(Model, KeepsHistory):
    """Exact posteriors, updated in O(n²) per observation; constructed as every ``Model``."""

    kind = "exact"
    file_version = 1

    def __init__(
        self, kernel: Kernel, ridge: float, n_arms: int, prior_mean: float | str = 0.0
    ) -> None:
        super().__init__(kernel, ridge, n_arms, prior_mean)
        self._arms = [Arm(ridge) for _ in range(n_arms)]
        self._asked: _Asked | None = None
        self._kept: dict[int, FloatArray] = {}  # arms' contexts, gathered

    def arm(self, arm: int) -> Arm:
        """Return one arm's state, for the follower."""
        return self._arms[arm]

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        return np.array([self._arms[arm].gain for arm in arms])

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        del features
        self._arms.append(Arm(self.ridge))
        self.observed.add_arm()

    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        state = self._arms[arm]
        solved = self._solved_when_asked(context, arm)
        if solved is None:
            v = self._kernel_row(context)[self.observed.places(arm)]
            state.factor.solve(v)
            solved = v, self._prior_variance(context)
        state.observe(*solved, reward)
        self.observed.append(context, arm, reward)
        self._asked = None
        self._kept.pop(arm, None)

    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards, one blocked factorisation per arm."""
        for arm in np.unique(arms):
            new = np.flatnonzero(arms == arm)
            v = self.solved(contexts[new], arm)
            gram = self.kernel(contexts[new], contexts[new])
            self._arms[arm].observe_many(v, gram, rewards[new])
        self.observed.extend(contexts, arms, rewards)
        self._asked, self._kept = None, {}

    def mark(self) -> list[tuple[int, float]]:
        return [(len(arm), arm.gain) for arm in self._arms]

    def rewind(self, mark: list[tuple[int, float]]) -> None:
        for arm, (size, gain) in zip(self._arms, mark, strict=True):
            arm.rewind(size, gain)
        self.observed.truncate(sum(size for size, _ in mark))
        self._asked, self._kept = None, {}

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        if contexts.ndim == 1:
            return self.solved_at(contexts, arms, pending)[0]
        if pending:
            self._assume(pending)
        mean = np.empty((len(contexts), len(arms)))
        std = np.empty_like(mean)
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        for column, arm in enumerate(arms):
            v = self.solved(contexts, arm, assumed=bool(pending))
            weights = self._arms[arm].weights(prior)
            mean[:, column] = weights @ v[: len(weights)] + prior
            std[:, column] = root(prior_variance - np.einsum("ij,ij->j", v, v))
        return Posterior(mean, std, self.information_gain(arms), self.ridge, self.n_arms)

    def solved_at(
        self, context: FloatArray, arms: Sequence[int], pending: Pending
    ) -> tuple[Posterior, dict[int, FloatArray], float]:
        """Return the posterior at one context, L⁻¹k by arm, and k(x, x); remembers them all."""
        self._assume(pending)
        kernel_row, prior = self._kernel_row(context), self.prior()
        prior_variance = self._prior_variance(context)
        mean, std = [], []  # for so few numbers, arrays take longer than floats
        solved = {}
        for arm in arms:
            v = self._solved_from(kernel_row, context, arm)
            state = self._arms[arm]
            solved[arm] = v
            known = v[: len(state)] if state.assumed else v
            mean.append(known.dot(state.z.view))
            if prior != 0:
                mean[-1] += prior * (1.0 - known.dot(state.w.view))
            std.append(math.sqrt(max(prior_variance - v.dot(v), 0.0)))
        self._asked = _Asked(context.tobytes(), solved, prior_variance)
        gain = self.information_gain(arms)
        posterior = Posterior(np.array(mean), np.array(std), gain, self.ridge, self.n_arms)
        return posterior, solved, prior_variance

    def moves(
        self,
        contexts: FloatArray,
        arm: int,
        points: FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> FloatArray:
        self._assume(pending)
        v, v_points = self.solved(contexts, arm, True), self.solved(points, arm, True)
        prior_variance = self.kernel.diagonal(contexts)
        variance = np.maximum(prior_variance - np.einsum("ij,ij->j", v, v), 0.0)
        steps = [
            pivot(float(left), self.ridge, float(whole), len(v))
            for left, whole in zip(variance, prior_variance, strict=True)
        ]
        return np.asarray((self.kernel(points, contexts) - v_points.T @ v) / steps)

    def follow(self, points: FloatArray | None = None) -> ExactFollower:
        return ExactFollower(self, points)

    def bounds_of(self, arms: Sequence[int]) -> Callable[[FloatArray], Bounds]:
        states = [self._arms[arm] for arm in arms]
        return partial(bounds, self.kernel, self.prior(), states, [*map(self._points, arms)])

    def history(self, contexts: FloatArray, arms: Sequence[int], since: int) -> History:
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        log = self.observed
        starts = [int(np.searchsorted(log.places(arm), since)) for arm in arms]
        sizes = [log.count(arm) - start + 1 for arm, start in zip(arms, starts, strict=True)]
        # One array for all arms: large ones come in huge pages, and touching fresh small pages
        # takes longer than what is computed in them.
        table = np.empty((2, sum(sizes), len(contexts)))
        states, first = [], 0
        for arm, start, size in zip(arms, starts, sizes, strict=True):
            mean, std = table[:, first : first + size]
            first += size
            v = self.solved(contexts, arm)
            gain = self._arms[arm].path(v, prior, prior_variance, start, (mean, std))
            states.append(Posterior(mean, std, gain, self.ridge, self.n_arms))
        pulled = log.arms[since:, None] == np.asarray(arms)
        none_yet = np.zeros((1, len(arms)), dtype=np.intp)
        return History(states, np.vstack([none_yet, pulled.cumsum(axis=0)]))

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        log, prior = self.observed, self.prior()
        posterior = self.posterior(log.contexts[places], arms)
        error = np.empty(len(places))
        columns = {arm: column for column, arm in enumerate(arms)}
        for arm in np.unique(log.arms[places]).tolist():
            rows = np.flatnonzero(log.arms[places] == arm)
            own = np.searchsorted(log.places(arm), places[rows])
            error[rows], variance = left_out(self._arms[arm], prior, own, visits[rows])
            if arm in columns:
                posterior.mean[rows, columns[arm]] = log.rewards[places[rows]] - error[rows]
                posterior.std[rows, columns[arm]] = np.sqrt(variance)
        return LeftOut(posterior, error)

    def sums(
        self, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        gram = self.kernel(contexts, contexts)
        variance, moves = np.zeros(len(weights)), np.zeros((len(weights), len(self)))
        for column, arm in enumerate(arms):
            own = weights[:, :, column]
            variance += np.einsum("ki,ki->k", own, own @ gram)
            state, points = self._arms[arm], self._points(arm)
            if not len(points):
                continue
            v = np.ascontiguousarray(self.kernel(points, contexts) @ own.T)
            state.factor.solve_many(v)
            variance -= np.einsum("ik,ik->k", v, v)
            solved = v.T.copy()
            for row in solved:
                state.factor.solve_transposed(row)
            moves[:, self.observed.places(arm)] = solved
        return np.maximum(variance, 0.0), moves

    def supports(self, arms: Sequence[int]) -> list[Support]:
        prior = self.prior()
        found = []
        for arm in arms:
            state = self._arms[arm]
            factors = ((1, state.arrays()["factor"]),)
            weights, innovations = state.dual(prior), state.weights(prior)
            found.append(Support(self._points(arm), weights, factors, state.gain, innovations))
        return found

    def snapshot(self) -> Self:
        """Return a model that stays as this one is now; factors are shared, not copied."""
        copy = type(self)(self.kernel, self.ridge, 0, self.prior_mean)
        copy.observed = self.observed.snapshot()
        copy._arms = [arm.snapshot() for arm in self._arms]
        return copy

    def arrays(self) -> dict[str, NDArray[Any]]:
        derived = {
            f"{name}{number}": values
            for number, arm in enumerate(self._arms)
            for name, values in arm.arrays().items()
        }
        return {**self.observed.arrays(), **derived}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.observed = Observations.restored(arrays, self.n_arms)
        for number in range(self.n_arms):
            own = {name: arrays[f"{name}{number}"] for name in ("factor", "z", "w")}
            self._arms[number] = Arm.restored(self.ridge, self.observed.count(number), own)

    def solved(self, contexts: FloatArray, arm: int, assumed: bool = False) -> FloatArray:
        """Return L⁻¹k for every context, shape (observations, contexts)."""
        state, points = self._arms[arm], self._points(arm)
        if assumed and state.assumed:
            points = np.vstack([points.reshape(-1, contexts.shape[1]), state.assumed_rows])
        if not len(points):
            return np.empty((0, len(contexts)))
        v = np.ascontiguousarray(self.kernel(points, contexts))
        if len(contexts) == 1:
            state.factor.solve(v[:, 0])  # without unpacking anything
        else:
            state.factor.solve_many(v)
        return v

    def _assume(self, pending: Pending) -> None:
        """Have every arm's factor count exactly the pending picks."""
        for number, state in enumerate(self._arms):
            waiting = pending.get(number, ())
            if len(state.assumed) == len(waiting) == 0:
                continue
            if not starts_with(waiting, state.assumed):
                state.retract()
            for context in waiting[len(state.assumed) :]:
                v = self._solved_from(self._kernel_row(context), context, number)
                state.assume(context, v, self._prior_variance(context))
                self._asked = None

    def _solved_from(self, kernel_row: FloatArray, context: FloatArray, arm: int) -> FloatArray:
        """L⁻¹k for one context, assumed observations included."""
        state = self._arms[arm]
        v = kernel_row.take(self.observed.places(arm))
        if state.assumed:
            v = np.concatenate([v, self.kernel(context[None], state.assumed_rows)[0]])
        state.factor.solve(v)
        return v

    def _solved_when_asked(self, context: FloatArray, arm: int) -> tuple[FloatArray, float] | None:
        """L⁻¹k and k(x, x) as found when the context was asked about, if no pick was assumed.

        With assumed rows in the solve, the others may come out different by a bit, and a learner
        from a file, which was not asked, would no longer go on exactly as this one.
        """
        asked = self._asked
        if asked is None or asked.context != context.tobytes():
            return None
        v = asked.solved.get(arm)
        if v is None or len(v) != len(self._arms[arm]):
            return None
        return v, asked.prior_variance

    def _points(self, arm: int) -> FloatArray:
        if arm not in self._kept:
            self._kept[arm] = self.observed.contexts[self.observed.places(arm)]
        return self._kept[arm]

    def _prior_variance(self, context: FloatArray) -> float:
        return float(self.kernel.diagonal(context[None])[0])

    def _kernel_row(self, context: FloatArray) -> FloatArray:
        if not len(self):
            return np.empty(0)
        return np.asarray(self.kernel(context[None], self.observed.contexts)[0])
