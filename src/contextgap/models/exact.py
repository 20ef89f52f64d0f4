"""The working model: exact posteriors from growing Cholesky factors, one per arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import lazy
from contextgap.kernels import Kernel
from contextgap.models.arm import MEAN_ROUNDING, ROUNDING, Arm, left_out, root
from contextgap.models.base import (
    MANY_PENDING,
    MOST_POOLED,
    NOTHING_PENDING,
    Bounds,
    Follower,
    History,
    KeepsHistory,
    LeftOut,
    Model,
    Pending,
    Pooled,
    Posterior,
    Predictor,
    Support,
    is_places,
)
from contextgap.models.follower import ExactFollower, starts_with
from contextgap.models.observations import Observations

_TINY = float(np.finfo(np.float64).tiny)
# With fewer points than this per arm, bounds would not save time.
_FEW = 256


class Asked(NamedTuple):
    """Results for the last context asked about, kept because tell usually follows ask."""

    context: bytes
    values: FloatArray  # of the kernel, at all observed contexts and those assumed
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
        self._asked: Asked | None = None
        self._kept: dict[int, FloatArray] = {}  # arms' contexts, gathered

    def arm(self, arm: int) -> Arm:
        """Return one arm's state, for followers and predictors."""
        return self._arms[arm]

    def points(self, arm: int) -> FloatArray:
        """Return the contexts at which an arm was observed."""
        if arm not in self._kept:
            self._kept[arm] = self.observed.contexts[self.rows(arm)]
        return self._kept[arm]

    def rows(self, arm: int) -> IntArray:
        """Return the places of the observations that an arm's factor has rows for."""
        return self.observed.places(arm)

    def row_noise(self, arm: int) -> FloatArray | None:
        """Return the noise of each of these with the ridge; None where it is the ridge."""
        return self._arms[arm].noise.view if self.observed.has_noise else None

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        return np.array([self._arms[arm].gain for arm in arms])

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        del features
        self._arms.append(Arm(self.ridge))
        self.observed.add_arm()

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        state = self._arms[arm]
        state.retract()
        state.observe(*self._solved_now(context, arm), reward, noise)
        self.observed.append(context, arm, reward, noise)
        self._asked = None
        self._kept.pop(arm, None)

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        """Take in many rewards, one blocked factorisation per arm."""
        own_noise = np.zeros(len(arms)) if noise is None else noise
        for arm in np.unique(arms):
            new = np.flatnonzero(arms == arm)
            v = self.solved(contexts[new], arm)
            gram = self.kernel(contexts[new], contexts[new])
            self._arms[arm].observe_many(v, gram, rewards[new], own_noise[new])
        self.observed.extend(contexts, arms, rewards, noise)
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
            self.assume(pending)
        return self.posterior_from(
            (self.solved(contexts, arm, assumed=bool(pending)) for arm in arms), contexts, arms
        )

    def posterior_from(
        self, solved: Iterable[FloatArray], contexts: FloatArray, arms: Sequence[int]
    ) -> Posterior:
        """Return the posterior at contexts, given L⁻¹k for each of the arms."""
        mean, std = np.empty((2, len(contexts), len(arms)))
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        for column, v in enumerate(solved):
            weights = self._arms[arms[column]].weights(prior)
            mean[:, column] = weights @ v[: len(weights)] + prior
            std[:, column] = root(prior_variance - np.einsum("ij,ij->j", v, v))
        return Posterior(mean, std, self.information_gain(arms), self.ridge, self.n_arms)

    def solved_at(
        self, context: FloatArray, arms: Sequence[int], pending: Pending
    ) -> tuple[Posterior, Asked]:
        """Return the posterior at one context, and what it was computed from; remembers it."""
        self.assume(pending)
        kernel_row, prior = self._kernel_row(context), self.prior()
        prior_variance = self._prior_variance(context)
        mean, std = [], []  # for so few numbers, arrays take longer than floats
        solved, starts = {}, self._starts()
        for arm in arms:
            v = solved[arm] = self._solved_from(kernel_row, arm, starts)
            state = self._arms[arm]
            known = v[: len(state)] if state.assumed else v
            mean.append(known.dot(state.z.view))
            if prior != 0:
                mean[-1] += prior * (1.0 - known.dot(state.w.view))
            std.append(math.sqrt(max(prior_variance - v.dot(v), 0.0)))
        self._asked = Asked(context.tobytes(), kernel_row, solved, prior_variance)
        gain = self.information_gain(arms)
        posterior = Posterior(np.array(mean), np.array(std), gain, self.ridge, self.n_arms)
        return posterior, self._asked

    def moves(
        self,
        contexts: FloatArray,
        arm: int,
        points: FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> FloatArray:
        return ExactPooled(self, contexts, [arm], pending).moves(0, points)

    def pooled(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Pooled:
        kind = ExactPooled if len(self) * len(contexts) <= MOST_POOLED else Pooled
        return kind(self, contexts, arms, pending)

    def follow(self, points: FloatArray | None = None) -> Follower:
        return ExactFollower(self, points)

    def predictor(self, arms: Sequence[int]) -> ExactPredictor:
        return ExactPredictor(self, arms)

    def history(self, contexts: FloatArray, arms: Sequence[int], since: int) -> History:
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        log = self.observed
        rows = [self.rows(arm) for arm in arms]
        starts = [int(np.searchsorted(own, since)) for own in rows]
        sizes = [len(own) - start + 1 for own, start in zip(rows, starts, strict=True)]
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
        steps = np.arange(since, len(log) + 1)
        known = [
            np.searchsorted(own, steps) - start for own, start in zip(rows, starts, strict=True)
        ]
        return History(states, np.stack(known, axis=1))

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
            state, points = self._arms[arm], self.points(arm)
            if not len(points):
                continue
            v = np.ascontiguousarray(self.cross(points, arm, contexts) @ own.T)
            state.factor.solve_many(v)
            variance -= np.einsum("ik,ik->k", v, v)
            moves[:, self.rows(arm)] += state.factor.solved_transposed(v)
        return np.maximum(variance, 0.0), moves

    def supports(self, arms: Sequence[int]) -> list[Support]:
        prior = self.prior()
        found = []
        for arm in arms:
            state = self._arms[arm]
            factors = ((1, state.arrays()["factor"]),)
            weights, told = state.dual(prior), (state.weights(prior), state.noise.view)
            found.append(Support(self.points(arm), weights, factors, state.gain, *told))
        return found

    def snapshot(self) -> Self:
        other = type(self)(self.kernel, self.ridge, 0, self.prior_mean)
        other.observed = self.observed.snapshot()
        other._arms = [arm.snapshot() for arm in self._arms]
        return other

    def arrays(self) -> dict[str, NDArray[Any]]:
        self.assume(NOTHING_PENDING)  # a loaded model assumes pending picks anew, and so does this
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
            noise = self.observed.noise[self.rows(number)]
            self._arms[number] = Arm.restored(self.ridge, noise, own)

    def cross(self, points: FloatArray, arm: int, contexts: FloatArray) -> FloatArray:
        """Return covariances of an arm's observations, and assumed ones behind them, with contexts.

        Those are of the expected rewards; ``points`` are the contexts of all observations.
        """
        del arm
        return self.kernel(points, contexts)

    def solved(self, contexts: FloatArray, arm: int, assumed: bool = False) -> FloatArray:
        """Return L⁻¹k for every context, shape (observations, contexts)."""
        state, points = self._arms[arm], self.points(arm)
        if assumed and state.assumed:
            points = np.vstack([points.reshape(-1, contexts.shape[1]), state.assumed_rows])
        if not len(points):
            return np.empty((0, len(contexts)))
        v = np.ascontiguousarray(self.cross(points, arm, contexts))
        if len(contexts) == 1:
            state.factor.solve(v[:, 0])  # without unpacking anything
        else:
            state.factor.solve_many(v)
        return v

    def solved_by_arm(self, contexts: FloatArray, arms: Iterable[int]) -> Iterator[FloatArray]:
        """Yield the same for each of the arms, assumed observations included."""
        values, starts = self.kernel(self._points(contexts.shape[1]), contexts), self._starts()
        for arm in arms:
            v = self._own(values, arm, starts)
            self._arms[arm].factor.solve_many(v)
            yield v

    def assume(self, pending: Pending) -> None:
        """Have every arm's factor count exactly the pending picks."""
        for number, state in enumerate(self._arms):
            waiting = pending.get(number, ())
            if len(state.assumed) == len(waiting) == 0:
                continue
            if not starts_with(waiting, state.assumed):
                state.retract()
                self._asked = None
            late = waiting[len(state.assumed) :]
            if len(late) > MANY_PENDING:
                contexts = np.array(late)
                v = self.solved(contexts, number, assumed=True)
                state.assume_many(late, v, self.kernel(contexts, contexts))
                continue
            for context in late:
                v, prior_variance = self._solved_now(context, number)
                state.assume(context, v, prior_variance)

    def _solved_from(
        self, kernel_row: FloatArray, arm: int, starts: list[int] | None = None
    ) -> FloatArray:
        """L⁻¹k for one context, assumed observations included."""
        v = self._own(kernel_row, arm, starts or self._starts())
        self._arms[arm].factor.solve(v)
        return v

    def _solved_now(self, context: FloatArray, arm: int) -> tuple[FloatArray, float]:
        """L⁻¹k for one context, and k(x, x); as found when asked about it, if that still holds."""
        # With assumed rows in the solve, the others may come out different by a bit, and a learner
        # from a file, which was not asked, would no longer go on exactly as this one.
        asked = self._asked
        if asked is not None and asked.context == context.tobytes():
            v = asked.solved.get(arm)
            if v is not None and len(v) == self._arms[arm].factor.size:
                return v, asked.prior_variance
        return self._solved_from(self._kernel_row(context), arm), self._prior_variance(context)

    def _prior_variance(self, context: FloatArray) -> float:
        return float(self.kernel.diagonal(context[None])[0])

    def _kernel_row(self, context: FloatArray) -> FloatArray:
        points = self._points(len(context))
        return np.asarray(self.kernel(context[None], points)[0]) if len(points) else np.empty(0)

    def _points(self, dimension: int) -> FloatArray:
        """All observed contexts, and then each arm's assumed ones."""
        assumed = [state.assumed_rows for state in self._arms if state.assumed]
        observed = self.observed.contexts.reshape(-1, dimension)
        return np.concatenate([observed, *assumed]) if assumed else observed

    def _starts(self) -> list[int]:
        """Where each arm's assumed contexts begin among these."""
        counts = (len(state.assumed) for state in self._arms)
        return list(accumulate(counts, initial=len(self.observed)))

    def _own(self, values: FloatArray, arm: int, starts: list[int]) -> FloatArray:
        """An arm's rows of kernel values at all these points."""
        own = values.take(self.rows(arm), axis=0)
        if not self._arms[arm].assumed:
            return own
        return np.concatenate([own, values[starts[arm] : starts[arm + 1]]])


class ExactPooled(Pooled):
    """Solves once for each arm, and computes kernel values at the same references once."""

    model: ExactModel
    _reference: IntArray | FloatArray | None = None
    _values: FloatArray

    @lazy
    def posterior(self) -> Posterior:
        return self.model.posterior_from(self._solved, self.contexts, self.arms)

    def covariances(self, arm: int, reference: IntArray | FloatArray) -> FloatArray:
        model, v, points = self.model, self._solved[arm], self.at(reference)
        seen = is_places(reference)
        at = v[:, reference] if seen else model.solved(points, self.arms[arm], True)
        if reference is not self._reference:
            self._reference = reference
            self._values = model.kernel(points, self.contexts)
        return np.asarray(self._values - at.T @ v)

    @property
    def floors(self) -> FloatArray:
        sizes = np.array([len(v) for v in self._solved])
        return ROUNDING * (sizes + 1) * self.model.kernel.diagonal(self.contexts)[:, None]

    @lazy
    def _solved(self) -> list[FloatArray]:
        self.model.assume(self.pending)
        return list(self.model.solved_by_arm(self.contexts, self.arms))


class ExactPredictor(Predictor):
    """Exact means, and bounds on standard deviations without a forward substitution.

    A mean costs one product with weights that are kept. A decision that is the same for all
    standard deviations between two bounds does not need them, and bounds are cheap: with λ_j and
    e_j the eigenvalues and eigenvectors of the arm's kernel matrix K, k = k(x, X) and c_j = e_j·k,

        std² = k(x, x) − Σ c_j²/(λ_j + ridge).

    With h = k(x, x) and u_j = c_j²/λ_j, the sum is that of u_j·λ_j/(λ_j + ridge), where Σ u_j ≤ h
    and Σ u_j·λ_j = |k|². As t/(t + ridge) is concave, Jensen's inequality bounds it by
    h·|k|²/(|k|² + ridge·h), so that

        std² ≥ h·ridge·h/(|k|² + ridge·h).

    On the other side std² ≤ k(x, x) − k_i²/(k(x_i, x_i) + ridge), what the observation at x_i says
    alone. Bounds from the leading eigenvectors were closer, but took more time than they saved.
    """

    model: ExactModel

    @lazy
    def _parts(self) -> list[_Part]:
        return [_Part.of(self.model, arm) for arm in self.arms]

    def means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means from kernel values and weights."""
        mean = np.full((len(contexts), len(self.arms)), self.model.prior())
        for column, part, values in self._values(contexts):
            mean[:, column] += values @ part.weights
        return mean, self._slack(self.model.kernel.diagonal(contexts))

    def bounds(self, contexts: FloatArray) -> Bounds | None:
        """Return means and bounds; None for small arms."""
        model, sizes = self.model, np.array([len(self.model.rows(arm)) for arm in self.arms])
        if sizes.max() < _FEW:
            return None
        mean = np.full((len(contexts), len(self.arms)), model.prior())
        squares, nearest = np.zeros((2, *mean.shape))
        for column, part, values in self._values(contexts):
            mean[:, column] += values @ part.weights
            squares[:, column] = np.einsum("ij,ij->i", values, values)
            if part.noise is None:
                nearest[:, column] = values.max(axis=1) ** 2 / (part.largest + model.ridge)
            else:
                alone = np.square(values) / (part.largest + part.noise)
                nearest[:, column] = alone.max(axis=1)
        prior_variance = model.kernel.diagonal(contexts)
        h = prior_variance[:, None]
        rounding = ROUNDING * (sizes + 1) * h
        least = h * (model.ridge * h / np.maximum(squares + model.ridge * h, _TINY)) - rounding
        return Bounds(mean, root(least), root(h - nearest + rounding), self._slack(prior_variance))

    def _values(self, contexts: FloatArray) -> Iterator[tuple[int, _Part, FloatArray]]:
        """Yield the columns of arms with observations, and kernel values with their points."""
        for column, part in enumerate(self._parts):
            if len(part.points):
                yield column, part, self.model.kernel(contexts, part.points)

    def _slack(self, prior_variance: FloatArray) -> FloatArray:
        reach = max(part.reach for part in self._parts)
        return MEAN_ROUNDING * (abs(self.model.prior()) + reach * np.sqrt(prior_variance))


class _Part(NamedTuple):
    """One arm's points, weights of kernel values in a mean, and bounds on the sizes of both."""

    points: FloatArray
    weights: FloatArray
    noise: FloatArray | None  # of every reward with the ridge; None where it is the ridge
    largest: float  # k(y, y) of all points
    reach: float

    @classmethod
    def of(cls, model: ExactModel, arm: int) -> _Part:
        points, weights = model.points(arm), model.arm(arm).dual(model.prior())
        largest = float(model.kernel.diagonal(points).max(initial=0.0)) if len(points) else 0.0
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        reach = float(np.abs(weights).sum()) * math.sqrt(largest)
        noise = model.row_noise(arm)
        return cls(points, weights, noise, largest, reach)
