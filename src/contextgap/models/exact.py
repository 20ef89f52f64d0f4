"""The working model: exact posteriors from growing Cholesky factors.

For one arm with L·Lᵀ = K + ridge·I, keep z = L⁻¹y and w = L⁻¹1. At a context x, one forward
substitution v = L⁻¹k gives everything:

    mean = m + v·(z − m·w)        std² = k(x, x) − v·v

Observing a reward r at x appends the row (v, d), d = √(std² + ridge), to L, and (r − v·z)/d to z.
No inverse, no refactorisation, no jitter: d² ≥ ridge whatever the rounding. Since w is kept beside
z, the prior mean m may change at any time at no cost, and since L of an earlier step is a leading
block of L, prefixes of v give every earlier posterior (``paths``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from contextgap.arrays import FloatArray, IntArray, Rows
from contextgap.kernels import Kernel
from contextgap.models.base import Posterior
from contextgap.models.factor import PanelFactor


class _Arm:
    """One arm's factor and what hangs on it."""

    def __init__(self) -> None:
        self.factor = PanelFactor()
        self.places = Rows(dtype=np.intp)  # its observations' places in the model's rows
        self.z = Rows()
        self.w = Rows()
        self.log_diagonal = 0.0  # ln det L
        self.assumed: list[FloatArray] = []  # contexts whose rewards are still to come

    def __len__(self) -> int:
        return len(self.z)

    def append(self, place: int, v: FloatArray, diagonal: float, reward: float) -> None:
        self.factor.append(v, diagonal)
        self.places.append(place)
        self.z.append((reward - v @ self.z.view) / diagonal)
        self.w.append((1.0 - v @ self.w.view) / diagonal)
        self.log_diagonal += math.log(diagonal)

    def retract(self) -> None:
        """Forget the assumed observations."""
        if self.assumed:
            self.factor.truncate(len(self))
            self.assumed = []

    def snapshot(self) -> _Arm:
        copy = _Arm()
        copy.factor = self.factor.snapshot()
        copy.factor.truncate(len(self))
        copy.places, copy.z, copy.w = (Rows.of(x.view) for x in (self.places, self.z, self.w))
        copy.log_diagonal = self.log_diagonal
        return copy

    def weights(self, prior: float) -> FloatArray:
        return self.z.view if prior == 0 else self.z.view - prior * self.w.view

    def gain(self, ridge: float) -> float:
        """½ ln det(I + K/ridge)."""
        return self.log_diagonal - 0.5 * len(self) * math.log(ridge)


class ExactModel:
    """Exact posteriors of all arms, updated in O(n²) per observation.

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
        self._arms = [_Arm() for _ in range(n_arms)]
        self._contexts = Rows(0)
        self._rewards = Rows()
        self._sequence = Rows(dtype=np.intp)
        # What was solved for the last context asked about: tell usually follows ask.
        self._asked: tuple[bytes, dict[int, FloatArray]] | None = None

    @property
    def contexts(self) -> FloatArray:
        """Every observed context, in order."""
        return self._contexts.view

    @property
    def rewards(self) -> FloatArray:
        """Every observed reward, in order."""
        return self._rewards.view

    @property
    def sequence(self) -> IntArray:
        """The arm of every observation, in order."""
        return self._sequence.view

    def __len__(self) -> int:
        return len(self._rewards)

    def count(self, arm: int) -> int:
        """Return the number of observations of an arm."""
        return len(self._arms[arm])

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return ½ ln det(I + K/ridge) of each arm."""
        return np.array([self._arms[arm].gain(self.ridge) for arm in arms])

    def prior(self) -> float:
        """Return the prior mean as a number."""
        if isinstance(self.prior_mean, str):
            return float(self.rewards.mean()) if len(self) else 0.0
        return self.prior_mean

    def add_arm(self) -> None:
        """Add an arm without observations."""
        self._arms.append(_Arm())

    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        """Take in one reward."""
        state = self._arms[arm]
        v = self._recall(context, arm)
        if v is None:
            v = self._kernel_row(context)[state.places.view]
            state.retract()
            state.factor.solve(v)
        state.retract()
        variance = max(float(self.kernel.diagonal(context[None])[0] - v @ v), 0.0)
        self._record(context[None], np.array([arm]), np.array([reward]))
        state.append(len(self) - 1, v, math.sqrt(variance + self.ridge), reward)

    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards, one blocked factorisation per arm."""
        first = len(self)
        self._record(contexts, arms, rewards)
        for arm in np.unique(arms):
            state = self._arms[arm]
            state.retract()
            new = np.flatnonzero(arms == arm)
            self._extend(state, contexts[new], rewards[new], first + new)

    def posterior(self, contexts: FloatArray, arms: Sequence[int]) -> Posterior:
        """Return the posterior of ``arms`` at every row of ``contexts``."""
        mean = np.empty((len(contexts), len(arms)))
        std = np.empty_like(mean)
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        for column, arm in enumerate(arms):
            v = self._solved(contexts, arm)
            mean[:, column] = self._arms[arm].weights(prior) @ v + prior
            std[:, column] = _root(prior_variance - np.einsum("ij,ij->j", v, v))
        return Posterior(mean, std, self.information_gain(arms), self.ridge)

    def posterior_at(self, context: FloatArray, arms: Sequence[int]) -> Posterior:
        """Return the posterior at one context, as if assumed observations had been made.

        An assumed reward equals its expectation, so it leaves the mean and shrinks the variance.
        """
        kernel_row = self._kernel_row(context)
        prior = self.prior()
        means, explained, solved = [], [], {}
        for arm in arms:
            state = self._arms[arm]
            v = kernel_row[state.places.view]
            if state.assumed:
                v = np.concatenate([v, self.kernel(context[None], np.array(state.assumed))[0]])
            state.factor.solve(v)
            known = v[: len(state)]
            mean = known @ state.z.view
            if prior != 0:
                mean += prior * (1.0 - known @ state.w.view)
            means.append(mean)
            explained.append(v @ v)
            solved[arm] = known
        self._asked = (context.tobytes(), solved)
        prior_variance = self.kernel.diagonal(context[None])[0]
        std = _root(prior_variance - np.array(explained))
        return Posterior(np.array(means), std, self.information_gain(arms), self.ridge)

    def assume(self, context: FloatArray, arm: int) -> None:
        """Count an observation whose reward is not known yet, until the arm's next real one."""
        state = self._arms[arm]
        v = self._kernel_row(context)[state.places.view]
        if state.assumed:
            v = np.concatenate([v, self.kernel(context[None], np.array(state.assumed))[0]])
        state.factor.solve(v)
        variance = max(float(self.kernel.diagonal(context[None])[0] - v @ v), 0.0)
        state.factor.append(v, math.sqrt(variance + self.ridge))
        state.assumed.append(context)
        self._asked = None

    def retract(self, arm: int) -> None:
        """Forget an arm's assumed observations."""
        self._arms[arm].retract()
        self._asked = None

    def assumed(self, arm: int) -> int:
        """Return how many observations of an arm are assumed."""
        return len(self._arms[arm].assumed)

    def paths(self, contexts: FloatArray, arms: Sequence[int], since: int) -> list[Posterior]:
        """Return each arm's posteriors from step ``since`` (observations in all) until now.

        Row i of an arm's arrays, of shape (its observations since then + 1, contexts), is its
        state i observations of its own after that step.
        """
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        return [self._path(contexts, arm, since, prior, prior_variance) for arm in arms]

    def snapshot(self) -> Self:
        """Return a model that stays as this one is now; factors are shared, not copied."""
        copy = type(self)(self.kernel, self.ridge, 0, self.prior_mean)
        copy._contexts, copy._rewards, copy._sequence = (
            Rows.of(x.view) for x in (self._contexts, self._rewards, self._sequence)
        )
        copy._arms = [arm.snapshot() for arm in self._arms]
        return copy

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything observed and derived, for a file."""
        derived = {
            f"{name}{number}": values
            for number, arm in enumerate(self._arms)
            for name, values in (
                ("factor", arm.factor.packed()[: len(arm) * (len(arm) + 1) // 2]),
                ("z", arm.z.view),
                ("w", arm.w.view),
            )
        }
        observed = {"contexts": self.contexts, "rewards": self.rewards, "sequence": self.sequence}
        return {**observed, **derived}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned; raise ``ValueError`` if it does not fit together."""
        contexts, rewards, sequence = (arrays[x] for x in ("contexts", "rewards", "sequence"))
        _check_observed(contexts, rewards, sequence, len(self._arms))
        self._contexts, self._rewards = Rows.of(contexts), Rows.of(rewards)
        self._sequence = Rows.of(sequence.astype(np.intp))
        for number, arm in enumerate(self._arms):
            arm.places = Rows.of(np.flatnonzero(sequence == number))
            size = len(arm.places)
            factor, z, w = (arrays[f"{name}{number}"] for name in ("factor", "z", "w"))
            for values, shape in ((factor, (size * (size + 1) // 2,)), (z, (size,)), (w, (size,))):
                _check_floats(values, shape)
            arm.factor = PanelFactor.from_packed(factor, size)
            arm.z, arm.w = Rows.of(z), Rows.of(w)
            # Summed in the order of arrival, so that not a bit differs from the saved model.
            arm.log_diagonal = sum(map(math.log, arm.factor.diagonal.tolist()), 0.0)

    def _record(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        if not len(self):
            self._contexts = Rows(contexts.shape[1])
        self._contexts.extend(contexts)
        self._rewards.extend(rewards)
        self._sequence.extend(arms)
        self._asked = None

    def _kernel_row(self, context: FloatArray) -> FloatArray:
        if not len(self):
            return np.empty(0)
        return np.asarray(self.kernel(context[None], self.contexts)[0])

    def _recall(self, context: FloatArray, arm: int) -> FloatArray | None:
        if self._asked is None or self._asked[0] != context.tobytes():
            return None
        return self._asked[1].get(arm)

    def _extend(
        self, state: _Arm, contexts: FloatArray, rewards: FloatArray, places: IntArray
    ) -> None:
        """Append rows for many observations of one arm.

        With V = L⁻¹K(old, new), the new rows of the factor are [Vᵀ, C], where
        C·Cᵀ = K(new, new) + ridge·I − VᵀV.
        """
        v = self.kernel(self.contexts[state.places.view], contexts) if len(state) else None
        gram = self.kernel(contexts, contexts)
        if v is None:
            v = np.empty((0, len(contexts)))
        state.factor.solve_many(v)
        corner = _corner(gram - v.T @ v, self.ridge)
        left = v.T
        for i, (place, reward) in enumerate(zip(places, rewards, strict=True)):
            row = np.concatenate([left[i], corner[i, :i]])
            state.append(int(place), row, float(corner[i, i]), float(reward))

    def _solved(self, contexts: FloatArray, arm: int) -> FloatArray:
        """L⁻¹k for every context, shape (observations, contexts)."""
        state = self._arms[arm]
        if not len(state):
            return np.empty((0, len(contexts)))
        v = np.ascontiguousarray(self.kernel(self.contexts[state.places.view], contexts))
        state.factor.solve_many(v)
        return v

    def _path(
        self,
        contexts: FloatArray,
        arm: int,
        since: int,
        prior: float,
        prior_variance: FloatArray,
    ) -> Posterior:
        state = self._arms[arm]
        start = int(np.searchsorted(state.places.view, since))
        v = self._solved(contexts, arm)
        weights = state.weights(prior)
        mean = np.empty((len(state) - start + 1, len(contexts)))
        mean[0] = weights[:start] @ v[:start] + prior
        np.multiply(v[start:], weights[start:, None], out=mean[1:])
        _accumulate(mean)
        np.square(v, out=v)
        variance = np.empty_like(mean)
        variance[0] = prior_variance - v[:start].sum(axis=0)
        np.negative(v[start:], out=variance[1:])
        _accumulate(variance)
        log_diagonal = np.log(state.factor.diagonal[: len(state)]) - 0.5 * math.log(self.ridge)
        gain = log_diagonal[:start].sum() + np.concatenate([[0.0], log_diagonal[start:].cumsum()])
        return Posterior(mean, _root(variance), gain[:, None], self.ridge)


def _accumulate(rows: FloatArray) -> None:
    """Replace every row by the sum of the rows up to it; ``np.cumsum`` along columns is slow."""
    for previous, row in pairwise(rows):
        row += previous


def _root(variance: FloatArray) -> FloatArray:
    """Square root, with rounding below zero taken as zero."""
    np.maximum(variance, 0.0, out=variance)
    return np.sqrt(variance, out=variance)


def _corner(schur: FloatArray, ridge: float) -> FloatArray:
    """Return C with C·Cᵀ = schur + ridge·I, its diagonal never below √ridge."""
    size = len(schur)
    try:
        factor = cholesky(schur + ridge * np.eye(size), lower=True)
        if (np.diagonal(factor) ** 2 >= ridge * (1 - 1e-6)).all():
            return factor
    except LinAlgError:
        pass
    # Rounding made a near-singular matrix indefinite. Row by row, as ``observe`` does it, the
    # variance can be clipped before the ridge is added.
    rows = PanelFactor()
    factor = np.zeros((size, size))
    for i in range(size):
        v = schur[:i, i].copy()
        rows.solve(v)
        factor[i, :i] = v
        factor[i, i] = math.sqrt(max(float(schur[i, i] - v @ v), 0.0) + ridge)
        rows.append(v, factor[i, i])
    return factor


def _check_observed(
    contexts: NDArray[Any], rewards: NDArray[Any], sequence: NDArray[Any], n_arms: int
) -> None:
    if contexts.ndim != 2:
        raise ValueError(f"contexts have {contexts.ndim} dimensions, not 2")
    _check_floats(contexts, contexts.shape)
    _check_floats(rewards, (len(contexts),))
    if sequence.shape != rewards.shape or sequence.dtype.kind != "i":
        raise ValueError("the sequence of arms does not match the rewards")
    if len(sequence) and not (sequence.min() >= 0 and sequence.max() < n_arms):
        raise ValueError("the sequence of arms names an arm that does not exist")


def _check_floats(values: NDArray[Any], shape: tuple[int, ...]) -> None:
    if values.dtype != np.float64 or values.shape != shape or not np.isfinite(values).all():
        raise ValueError(
            f"expected finite floats of shape {shape}, got {values.dtype} {values.shape}"
        )
