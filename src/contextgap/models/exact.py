"""The working model: exact posteriors from growing Cholesky factors, one per arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.kernels import Kernel
from contextgap.models.arm import Arm, check_floats, pivot, root
from contextgap.models.base import Posterior
from contextgap.models.followed import Followed, carried_over
from contextgap.models.left_out import LeftOut, left_out


class _Asked(NamedTuple):
    """What was computed for the last context asked about: tell usually follows ask."""

    context: bytes
    solved: dict[int, FloatArray]  # L⁻¹k by arm, assumed observations included
    prior_variance: float


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
        self._arms = [Arm(ridge) for _ in range(n_arms)]
        self._contexts = Rows(0)
        self._rewards = Rows()
        self._sequence = Rows(dtype=np.intp)
        self._asked: _Asked | None = None
        # Where the arms' posteriors are followed for look_ahead: as it was told, and as contexts.
        self._reference: IntArray | FloatArray = np.empty(0, dtype=np.intp)
        self._points: FloatArray = np.empty((0, 0))

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

    @property
    def dimension(self) -> int:
        """Numbers per context."""
        return int(self.contexts.shape[1])

    @property
    def n_arms(self) -> int:
        """Number of arms, retired ones included."""
        return len(self._arms)

    def __len__(self) -> int:
        return len(self._rewards.view)

    def count(self, arm: int) -> int:
        """Return the number of observations of an arm."""
        return len(self._arms[arm].z.view)

    def places(self, arm: int) -> IntArray:
        """Return the places of an arm's observations among all."""
        return self._arms[arm].places.view

    def arm(self, arm: int) -> Arm:
        """Return one arm's state; to look at, not to change."""
        return self._arms[arm]

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return ½ ln det(I + K/ridge) of each arm."""
        return np.array([self._arms[arm].gain for arm in arms])

    def prior(self) -> float:
        """Return the prior mean as a number."""
        if isinstance(self.prior_mean, str):
            return float(self.rewards.mean()) if len(self) else 0.0
        return self.prior_mean

    def add_arm(self) -> None:
        """Add an arm without observations."""
        self._arms.append(Arm(self.ridge))

    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        """Take in one reward."""
        state, asked = self._arms[arm], self._asked
        if asked is not None and arm in asked.solved and asked.context == context.tobytes():
            v, prior_variance = asked.solved[arm][: len(state)], asked.prior_variance
        else:
            v = self._kernel_row(context)[state.places.view]
            state.factor.solve(v)
            prior_variance = self._prior_variance(context)
        state.observe(len(self), v, prior_variance, reward)
        if not len(self):
            self._contexts = Rows(len(context))
        self._contexts.append(context)
        self._rewards.append(reward)
        self._sequence.append(arm)
        self._asked = None

    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards, one blocked factorisation per arm."""
        for arm in np.unique(arms):
            new = np.flatnonzero(arms == arm)
            v = self._solved(contexts[new], arm)
            gram = self.kernel(contexts[new], contexts[new])
            self._arms[arm].observe_many(len(self) + new, v, gram, rewards[new])
        if not len(self):
            self._contexts = Rows(contexts.shape[1])
        self._contexts.extend(contexts)
        self._rewards.extend(rewards)
        self._sequence.extend(arms)
        self._asked = None

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], assumed: bool = False
    ) -> Posterior:
        """Return the posterior of ``arms`` at every row of ``contexts``.

        Assumed observations count, as in ``posterior_at``, only if asked.
        """
        mean = np.empty((len(contexts), len(arms)))
        std = np.empty_like(mean)
        prior, prior_variance = self.prior(), self.kernel.diagonal(contexts)
        for column, arm in enumerate(arms):
            v = self._solved(contexts, arm, assumed)
            weights = self._arms[arm].weights(prior)
            mean[:, column] = weights @ v[: len(weights)] + prior
            std[:, column] = root(prior_variance - np.einsum("ij,ij->j", v, v))
        return Posterior(mean, std, self.information_gain(arms), self.ridge, len(self._arms))

    def posterior_at(self, context: FloatArray, arms: Sequence[int]) -> Posterior:
        """Return the posterior at one context, as if assumed observations had been made.

        An assumed reward equals its expectation, so it leaves the mean and shrinks the variance.
        """
        kernel_row, prior = self._kernel_row(context), self.prior()
        prior_variance = self._prior_variance(context)
        mean, std = [], []  # floats: for as few as there are arms, arrays take longer
        solved = {}
        for arm in arms:
            v = self._solved_at(context, arm, kernel_row)
            state = self._arms[arm]
            solved[arm] = v
            known = v[: len(state)] if state.assumed else v
            mean.append(known.dot(state.z.view))
            if prior != 0:
                mean[-1] += prior * (1.0 - known.dot(state.w.view))
            std.append(math.sqrt(max(prior_variance - v.dot(v), 0.0)))
        self._asked = _Asked(context.tobytes(), solved, prior_variance)
        gain = self.information_gain(arms)
        return Posterior(np.array(mean), np.array(std), gain, self.ridge, len(self._arms))

    def look_ahead(
        self, context: FloatArray, arms: Sequence[int], reference: IntArray | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the means at reference points, and how far trying an arm here would move them.

        ``reference`` holds places of observed contexts, or contexts, shape (m, d). Both results
        have shape (m + 1, arms); the last row is ``context`` itself. If an arm were tried at
        ``context``, its mean at a reference point would move by a centred normal whose standard
        deviation (with a sign) is their posterior covariance over √(variance here + ridge).
        Assumed observations count as in ``posterior_at``.
        """
        self._follow(reference)
        here = self.posterior_at(context, arms)
        solved = self._asked.solved if self._asked is not None else {}
        prior, prior_variance = self.prior(), self._prior_variance(context)
        mean, move = np.empty((2, len(self._points) + 1, len(arms)))
        mean[-1], move[-1] = here.mean, here.std**2
        values = self._values_at_points(context)
        for i, arm in enumerate(arms):
            followed, v = self._arms[arm].followed, solved[arm]
            if len(values):
                mean[:-1, i] = followed.mean(prior)
                move[:-1, i] = values - v @ followed.rows
            move[:, i] /= pivot(float(move[-1, i]), self.ridge, prior_variance, len(v))
        return mean, move

    def moves(self, contexts: FloatArray, arm: int, points: FloatArray) -> FloatArray:
        """Return how far an arm's mean at points would move if it were tried at contexts.

        As in ``look_ahead``, assumed observations included; shape (points, contexts).
        """
        v, v_points = self._solved(contexts, arm, True), self._solved(points, arm, True)
        prior_variance = self.kernel.diagonal(contexts)
        variance = np.maximum(prior_variance - np.einsum("ij,ij->j", v, v), 0.0)
        steps = [
            pivot(float(left), self.ridge, float(whole), len(v))
            for left, whole in zip(variance, prior_variance, strict=True)
        ]
        return np.asarray((self.kernel(points, contexts) - v_points.T @ v) / steps)

    def assume(self, context: FloatArray, arm: int) -> None:
        """Count an observation whose reward is not known yet, until the arm's next real one."""
        v = self._solved_at(context, arm, self._kernel_row(context))
        self._arms[arm].assume(context, v, self._prior_variance(context))
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
        starts = [int(np.searchsorted(self._arms[arm].places.view, since)) for arm in arms]
        sizes = [self.count(arm) - start + 1 for arm, start in zip(arms, starts, strict=True)]
        # One array for all arms: large ones come in huge pages, and touching fresh small pages
        # takes longer than what is computed in them.
        table = np.empty((2, sum(sizes), len(contexts)))
        paths, first = [], 0
        for arm, start, size in zip(arms, starts, sizes, strict=True):
            mean, std = table[:, first : first + size]
            first += size
            v = self._solved(contexts, arm)
            gain = self._arms[arm].path(v, prior, prior_variance, start, (mean, std))
            paths.append(Posterior(mean, std, gain, self.ridge, len(self._arms)))
        return paths

    def left_out(self, arm: int, places: IntArray, visits: IntArray) -> LeftOut:
        """Return what is believed of an arm at observed contexts without what was heard there.

        ``places`` are places of the arm's observations among all; ``visits`` says how many of the
        arm's observations to leave out with each.
        """
        state = self._arms[arm]
        own = np.searchsorted(state.places.view, places)
        return left_out(state, self.prior(), own, visits)

    def sums(
        self, arm: int, contexts: FloatArray, weights: FloatArray, gram: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what is known of Σ weight · f(context), for each column of weights.

        The first result is its posterior variance; the second, with a row for each of the arm's
        rewards, by how much its mean moves with that reward. ``gram`` holds the kernel between all
        the contexts.
        """
        variance = np.einsum("ik,ik->k", weights, gram @ weights)
        state = self._arms[arm]
        rows = self._rows(state, contexts.shape[1], assumed=False)
        if not len(rows):
            return variance, np.empty((0, weights.shape[1]))
        v = np.ascontiguousarray(self.kernel(rows, contexts) @ weights)
        state.factor.solve_many(v)
        variance -= np.einsum("ik,ik->k", v, v)
        moves = v.T.copy()
        for column in moves:
            state.factor.solve_transposed(column)
        return np.maximum(variance, 0.0), moves.T

    def factor_row(self, arm: int, place: int) -> FloatArray:
        """Return the row that an arm's observation number ``place`` added to its factor."""
        return self._arms[arm].factor.row(place)

    def innovations(self, arm: int, place: int) -> tuple[float, float]:
        """Return the entries that it added to L⁻¹y and to L⁻¹1."""
        return float(self._arms[arm].z.view[place]), float(self._arms[arm].w.view[place])

    def mark(self) -> list[tuple[int, float]]:
        """Return what ``rewind`` needs to come back to this state."""
        return [(len(arm), arm.gain) for arm in self._arms]

    def rewind(self, mark: list[tuple[int, float]]) -> None:
        """Undo all observations since ``mark``, also where one was interrupted half way."""
        for arm, (size, gain) in zip(self._arms, mark, strict=True):
            arm.rewind(size, gain)
        observed = sum(size for size, _ in mark)
        for rows in (self._contexts, self._rewards, self._sequence):
            rows.truncate(observed)
        self._asked = None
        self.forget_points()

    def forget_points(self) -> None:
        """Stop following reference points; ``look_ahead`` starts anew, from the factors alone."""
        for arm in self._arms:
            arm.followed = Followed()
        self._reference, self._points = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def by_arm(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return every arm's contexts and every arm's rewards."""
        places = [arm.places.view for arm in self._arms]
        return [self.contexts[own] for own in places], [self.rewards[own] for own in places]

    def refitted(self, kernel: Kernel, ridge: float, prior_mean: float | str) -> Self:
        """Return a model of the same observations with other settings."""
        model = type(self)(kernel, ridge, len(self._arms), prior_mean)
        model.observe_many(self.contexts, self.sequence, self.rewards)
        return model

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
            for name, values in arm.arrays().items()
        }
        observed = {"contexts": self.contexts, "rewards": self.rewards, "sequence": self.sequence}
        return {**observed, **derived}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` returned; raise ``ValueError`` if it does not fit together."""
        contexts, rewards, sequence = (arrays[x] for x in ("contexts", "rewards", "sequence"))
        if contexts.ndim != 2:
            raise ValueError(f"contexts have {contexts.ndim} dimensions, not 2")
        check_floats(contexts, contexts.shape)
        check_floats(rewards, (len(contexts),))
        if sequence.shape != rewards.shape or sequence.dtype.kind != "i":
            raise ValueError("the sequence of arms does not match the rewards")
        if len(sequence) and not (sequence.min() >= 0 and sequence.max() < len(self._arms)):
            raise ValueError("the sequence of arms names an arm that does not exist")
        self._contexts, self._rewards = Rows.of(contexts), Rows.of(rewards)
        self._sequence = Rows.of(sequence.astype(np.intp))
        for number in range(len(self._arms)):
            own = {name: arrays[f"{name}{number}"] for name in ("factor", "z", "w")}
            places = np.flatnonzero(sequence == number)
            self._arms[number] = Arm.restored(self.ridge, places, own)

    def _prior_variance(self, context: FloatArray) -> float:
        return float(self.kernel.diagonal(context[None])[0])

    def _kernel_row(self, context: FloatArray) -> FloatArray:
        if not len(self):
            return np.empty(0)
        return np.asarray(self.kernel(context[None], self.contexts)[0])

    def _solved_at(self, context: FloatArray, arm: int, kernel_row: FloatArray) -> FloatArray:
        """L⁻¹k for one context, assumed observations included."""
        state = self._arms[arm]
        v = kernel_row.take(state.places.view)
        if state.assumed:
            v = np.concatenate([v, self.kernel(context[None], np.array(state.assumed))[0]])
        state.factor.solve(v)
        return v

    def _follow(self, reference: IntArray | FloatArray) -> None:
        """Bring every arm's ``followed`` up to date, at the points now wanted."""
        kept, added = carried_over(self._reference, reference)
        before = self._points
        seen = reference.dtype.kind == "i"
        points = np.asarray(self.contexts[reference] if seen else reference, dtype=np.float64)
        for state in self._arms:
            if len(state.followed.fit):  # else the arm is new, or nothing was followed so far
                self._catch_up(state)
                if len(kept) < len(before):
                    state.followed.keep(kept)
                self._add_points(state, points[added])
            else:
                self._add_points(state, points)
        self._reference, self._points = reference.copy(), points

    def _catch_up(self, state: Arm) -> None:
        size = len(state)
        for i in range(state.followed.size, state.factor.size):
            known = i < size
            context = self.contexts[state.places.view[i]] if known else state.assumed[i - size]
            z, w = (state.z.view[i], state.w.view[i]) if known else (0.0, 0.0)
            state.followed.observe(state.factor.row(i), self._values_at_points(context), z, w)

    def _add_points(self, state: Arm, points: FloatArray) -> None:
        if not len(points):
            return
        rows = self._rows(state, points.shape[1], assumed=True)
        columns = np.empty((0, len(points)))
        if len(rows):
            columns = np.ascontiguousarray(self.kernel(rows, points))
            state.factor.solve_many(columns)
        state.followed.add(columns, state.z.view, state.w.view)

    def _values_at_points(self, context: FloatArray) -> FloatArray:
        if not len(self._points):
            return np.empty(0)
        return np.asarray(self.kernel(context[None], self._points)[0])

    def _solved(self, contexts: FloatArray, arm: int, assumed: bool = False) -> FloatArray:
        """L⁻¹k for every context, shape (observations, contexts)."""
        state = self._arms[arm]
        rows = self._rows(state, contexts.shape[1], assumed)
        if not len(rows):
            return np.empty((0, len(contexts)))
        v = np.ascontiguousarray(self.kernel(rows, contexts))
        if len(contexts) == 1:
            state.factor.solve(v[:, 0])  # without unpacking anything
        else:
            state.factor.solve_many(v)
        return v

    def _rows(self, state: Arm, dimension: int, assumed: bool) -> FloatArray:
        """An arm's contexts, those of assumed observations after the others."""
        rows: FloatArray = self.contexts[state.places.view]
        if not (assumed and state.assumed):
            return rows
        return np.vstack([rows.reshape(-1, dimension), state.assumed])
