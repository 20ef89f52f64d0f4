"""The bounded model: a regression on inducing points, of the same cost for any number of rows.

All arms share a dictionary of at most m inducing points; ``bounded_arm`` has the formulas. Raw rows
are kept as well, for they are small: from them the inducing points are chosen anew now and then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import lazy
from contextgap.kernels import Kernel
from contextgap.models.arm import root
from contextgap.models.base import (
    MANY_PENDING,
    MOST_POOLED,
    NOTHING_PENDING,
    LeftOut,
    Model,
    Pending,
    Pooled,
    Posterior,
    Support,
    is_places,
)
from contextgap.models.bounded_arm import ARRAYS, BoundedArm, BoundedPredictor, squares
from contextgap.models.dictionary import (
    Dictionary,
    Statistics,
    Whitened,
    blocks,
    sums_by_arm,
)
from contextgap.models.factor import Triangle
from contextgap.models.follower import BoundedFollower, starts_with
from contextgap.models.observations import Observations, check_floats

POINTS = 512
# Largest δ, in ridges, at which more inducing points would change nothing.
TOLERANCE = 0.01
# By how much the mean δ must fall for a new dictionary to be worth a replay of all rows.
_WORTH = 0.9
# Rows that a single observation may have replayed; more are replayed in bulk loads only.
MOST_REPLAYED = 2**17
_ONE_BY_ONE = 16  # rows of a batch that are observed singly
_TINY = float(np.finfo(np.float64).tiny)


class Asked(NamedTuple):
    """Results for the last context asked about, kept because tell usually follows ask."""

    context: bytes
    whitened: Whitened
    solved: dict[int, tuple[FloatArray, FloatArray]]  # q and v by arm


class BoundedModel(Model):
    """Posteriors from at most ``points`` inducing points, in O(m²) for any number of rewards."""

    kind = "bounded"
    approximate = True
    common_support = True

    def __init__(
        self,
        kernel: Kernel,
        ridge: float,
        n_arms: int,
        prior_mean: float | str = 0.0,
        points: int = POINTS,
    ) -> None:
        super().__init__(kernel, ridge, n_arms, prior_mean)
        self.points = checks.whole("points", points, least=1)
        self.dictionary = Dictionary.of(kernel, np.empty((0, 0)))
        self._arms = [BoundedArm(ridge, 0) for _ in range(n_arms)]
        self._next_choice = 1  # observations at which the dictionary is chosen anew
        self._reward_sum = 0.0
        self._asked: Asked | None = None

    def __len__(self) -> int:
        return len(self.observed) + self.observed.forgotten

    @property
    def numbers_per_context(self) -> int:
        return 2 * len(self.dictionary)

    def settings(self) -> dict[str, Any]:
        return {"points": self.points}

    def prior(self) -> float:
        if isinstance(self.prior_mean, str):
            return self._reward_sum / len(self) if len(self) else 0.0
        return self.prior_mean

    def arm(self, arm: int) -> BoundedArm:
        """Return one arm's state, for the follower."""
        return self._arms[arm]

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return an upper bound on ½ ln det(I + K/ridge) of each arm."""
        return np.array([self._arms[arm].gain_bracket[1] for arm in arms])

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        del features
        self._arms.append(BoundedArm(self.ridge, len(self.dictionary)))
        self.observed.add_arm()

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        state, asked = self._arms[arm], self._asked
        # Solved together with pending picks, other rows may come out different by a bit, and a
        # learner from a file, which was not asked, would no longer go on exactly as this one.
        state.retract()
        same = asked is not None and asked.context == context.tobytes()
        known = asked.solved.get(arm) if asked is not None and same else None
        if asked is None or known is None or len(known[1]) != len(state.beside):
            whitened = self.whiten(context)
            solved = state.solve(whitened.features)
        else:
            whitened, solved = asked.whitened, known
        state.observe(whitened.features, float(whitened.residual), solved, reward, noise)
        self.observed.append(context, arm, reward, noise)
        self._reward_sum += reward
        self._asked = None
        if self._next_choice <= len(self) <= MOST_REPLAYED:
            self.choose_anew()

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        """Take in many rewards as sums over blocks, one Cholesky factorisation per arm."""
        if len(arms) <= _ONE_BY_ONE:
            own = np.zeros(len(arms)) if noise is None else noise
            told = arms.tolist(), rewards.tolist(), own.tolist()
            for context, *values in zip(contexts, *told, strict=True):
                self.observe(context, *values)
            return
        known = len(self)
        self.observed.extend(contexts, arms, rewards, noise)
        self._reward_sum += float(rewards.sum())
        self._asked = None
        if len(self) < self._next_choice or not self.choose_anew():
            self._absorb(known)

    def take_over(self, log: Observations, dictionary: Dictionary | None = None) -> None:
        """Begin with everything in a log, and with given inducing points or such as suit it."""
        self.observed, self._reward_sum = log, float(log.rewards.sum())
        if dictionary is None:
            self.choose_anew()
        else:
            self._next_choice = 2 * len(self)
            self._use(dictionary)

    def take_sums(
        self,
        log: Observations,
        dictionary: Dictionary,
        sums: Mapping[int, Statistics],
        reward_sum: float,
    ) -> None:
        """Begin with sums over many rows, of which the log has some."""
        self.observed, self._reward_sum, self.dictionary = log, reward_sum, dictionary
        self._arms = [BoundedArm(self.ridge, len(dictionary)) for _ in self._arms]
        self._next_choice, self._asked = 2 * len(self), None
        self._add(sums)

    def choose_anew(self) -> bool:
        """Choose inducing points anew and replay all rows, if that pays; return whether it did."""
        contexts = self.observed.contexts
        self._next_choice = 2 * len(self)
        mean, largest = self.dictionary.mean_residual(self.kernel, contexts)
        tolerance = TOLERANCE * self.ridge
        if len(self.dictionary) and largest <= tolerance:
            return False
        chosen = Dictionary.chosen(self.kernel, contexts, self.points, tolerance)
        if len(self.dictionary) and chosen.mean_residual(self.kernel, contexts)[0] > _WORTH * mean:
            return False
        self._use(chosen)
        return True

    def with_points(self, points: int) -> Self | None:
        """Return the same with more inducing points, where that pays; None where it does not."""
        other = type(self)(self.kernel, self.ridge, self.n_arms, self.prior_mean, points)
        other.observed = self.observed.snapshot()
        other._reward_sum, other.dictionary = self._reward_sum, self.dictionary
        return other if other.choose_anew() else None

    def mark(self) -> tuple[Any, ...]:
        sums = self._next_choice, self._reward_sum
        arms = [(arm, arm.mark()) for arm in self._arms]
        return len(self.observed), self.dictionary, arms, *sums

    def rewind(self, mark: tuple[Any, ...]) -> None:
        size, self.dictionary, arms, self._next_choice, self._reward_sum = mark
        self._arms = [arm for arm, _ in arms]
        for arm, state in arms:
            arm.rewind(state)
        self.observed.truncate(size)
        self._asked = None

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        if contexts.ndim == 1:
            return self.posterior_and_solved(contexts, arms, pending)[0]
        if pending:
            self.assume(pending)
        mean, std = np.empty((2, len(contexts), len(arms)))
        prior, assumed = self.prior(), bool(pending)
        for block in blocks(len(contexts), len(self.dictionary)):
            features, residual = self.whiten(contexts[block])
            for column, arm in enumerate(arms):
                state = self._arms[arm]
                q, v = state.solve_many(features, assumed)
                mean[block, column] = prior + state.mean(q, v, prior)
                std[block, column] = root(residual + squares(q) - squares(v))
        return Posterior(mean, std, self.information_gain(arms), self.ridge, self.n_arms)

    def posterior_and_solved(
        self, context: FloatArray, arms: Sequence[int], pending: Pending
    ) -> tuple[Posterior, Asked]:
        """Return the posterior at one context, and what it was computed from; remembers it."""
        self.assume(pending)
        whitened, prior = self.whiten(context), self.prior()
        solved, mean, std = {}, [], []
        for arm in arms:
            state = self._arms[arm]
            q, v = solved[arm] = state.solve(whitened.features)
            mean.append(prior + float(state.mean(q, v, prior)))
            std.append(math.sqrt(max(float(whitened.residual + q @ q - v @ v), 0.0)))
        self._asked = Asked(context.tobytes(), whitened, solved)
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
        return BoundedPooled(self, contexts, [arm], pending).moves(0, points)

    def pooled(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Pooled:
        numbers = len(arms) * self.numbers_per_context * len(contexts)
        return (BoundedPooled if numbers <= MOST_POOLED else Pooled)(self, contexts, arms, pending)

    def follow(self, points: FloatArray | None = None) -> BoundedFollower:
        return BoundedFollower(self, points)

    def predictor(self, arms: Sequence[int]) -> BoundedPredictor:
        return BoundedPredictor(self, arms)

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        # With h = w·(|q|² − |v|²), the share of a prediction that is the reward's own, k visits
        # left out together have the error (y − mean)/(1 − k·h) and leave a variance of
        # δ + (|q|² − |v|²)/(1 − k·h). The inducing points do not change.
        log, prior = self.observed, self.prior()
        contexts = log.contexts[places]
        posterior = self.posterior(contexts, arms)
        error = np.empty(len(places))
        columns = {arm: column for column, arm in enumerate(arms)}
        for arm in np.unique(log.arms[places]).tolist():
            rows, state = np.flatnonzero(log.arms[places] == arm), self.arm(arm)
            features, residual = self.whiten(contexts[rows])
            q, v = state.solve_many(features, assumed=False)
            known = np.maximum(squares(q) - squares(v), 0.0)
            noise = self.ridge + residual + log.noise[places[rows]]
            left = np.maximum(1.0 - visits[rows] * known / noise, _TINY)
            rewards = log.rewards[places[rows]]
            error[rows] = (rewards - prior - state.mean(q, v, prior)) / left
            if arm in columns:
                posterior.mean[rows, columns[arm]] = rewards - error[rows]
                posterior.std[rows, columns[arm]] = np.sqrt(residual + known / left)
        return LeftOut(posterior, error)

    def cavities(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        log, prior, (mean, variance) = self.observed, self.prior(), np.empty((2, len(places)))
        for arm in np.unique(log.arms[places]).tolist():
            own, state = np.flatnonzero(log.arms[places] == arm), self.arm(arm)
            features, residual = self.whiten(log.contexts[places[own]])
            q, v = state.solve_many(features, assumed=False)
            known = np.maximum(squares(q) - squares(v), 0.0)
            noise = self.ridge + residual + log.noise[places[own]]
            left = np.maximum(1.0 - known / noise, _TINY)
            rewards = log.rewards[places[own]]
            mean[own] = rewards - (rewards - prior - state.mean(q, v, prior)) / left
            variance[own] = residual + known / left
        return mean, variance

    def averages(
        self, arms: Sequence[int], sums: Mapping[int, Statistics]
    ) -> tuple[FloatArray, FloatArray]:
        """Return what always choosing each arm would earn, averaged over the rows of statistics.

        The first are averages of predictions at all rows; the second add, at an arm's own rows, the
        prediction errors with their importance weights. Predictions are linear in φ, so their sums
        are those at sums of φ.
        """
        prior, everything = self.prior(), list(sums.values())
        count, seen = (
            sum(each.count for each in everything),
            sum(each.seen[0] for each in everything),
        )
        direct, added = np.empty((2, len(arms)))
        for column, arm in enumerate(arms):
            own, state = sums.get(arm), self.arm(arm)
            features = np.stack([seen, np.zeros_like(seen) if own is None else own.seen[1]], axis=1)
            q, v = state.solve_many(features, assumed=False)
            everywhere, here = state.mean(q, v, prior)
            weight, told = (0.0, 0.0) if own is None else own.weighted
            direct[column] = prior + everywhere / count
            added[column] = (told - weight * prior - here) / count
        return direct, direct + added

    def sums(
        self, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        # What inducing points leave over has its prior covariance, K − ΦᵀΦ.
        self.assume(NOTHING_PENDING)
        gram, features = self.kernel(contexts, contexts), self.whiten(contexts).features
        variance, duals = np.zeros(len(weights)), {}
        for column, arm in enumerate(arms):
            own, state = weights[:, :, column], self.arm(arm)
            combined = np.ascontiguousarray(features @ own.T)
            q, v = state.solve_many(combined, assumed=False)
            variance += np.einsum("ki,ki->k", own, own @ gram) - squares(combined)
            variance += squares(q) - squares(v)
            # R⁻¹(I + VᵀV)⁻¹q, by the same identity that gives the variance.
            inner = q - state.beside.rows.view.T @ state.beside.factor.solved_transposed(v).T
            duals[arm] = np.stack([state.folded.root.solve_transposed(x) for x in inner.T])
        return np.maximum(variance, 0.0), self._sum_moves(duals, len(weights))

    def _sum_moves(self, duals: dict[int, FloatArray], count: int) -> FloatArray:
        """Return w·φ·dual of every observation's arm, shape (count, observations)."""
        log = self.observed
        moves = np.zeros((count, len(log)))
        for block in blocks(len(log), len(self.dictionary)):
            features, residual = self.whiten(log.contexts[block])
            for arm, dual in duals.items():
                own = np.flatnonzero(log.arms[block] == arm)
                noise = self.ridge + residual[own] + log.noise[block.start + own]
                moves[:, block.start + own] = dual @ features[:, own] / noise
        return moves

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        return [len(self.dictionary)] * len(arms)

    def supports(self, arms: Sequence[int]) -> list[Support]:
        """Return the arrays that determine each arm's posterior: |φ|² is taken away, |q|² added."""
        lower, found = self.dictionary.factor, []
        for arm in arms:
            folded = self._arms[arm].all_folded()
            both = Triangle.of(lower.square() @ folded.root.square())
            weights = self.weights(arm)
            gain = float(self.information_gain([arm])[0])
            factors = ((1, lower.packed), (-1, both.packed))
            found.append(Support(self.dictionary.points, weights, factors, gain))
        return found

    def snapshot(self) -> Self:
        return self._copy(self.observed.snapshot())

    def deployed(self) -> Self:
        """Return a copy that keeps a sample of the rows only: decisions need none of them."""
        return self._copy(self.observed.thinned())

    def _copy(self, observed: Observations) -> Self:
        other = type(self)(self.kernel, self.ridge, 0, self.prior_mean, self.points)
        other.observed = observed
        other._arms = [arm.snapshot() for arm in self._arms]
        other.dictionary, other._next_choice = self.dictionary, self._next_choice
        other._reward_sum = self._reward_sum
        return other

    def arrays(self) -> dict[str, NDArray[Any]]:
        self._asked = None  # a loaded model has none, and both are to continue identically
        derived = {
            f"{name}{number}": values
            for number, arm in enumerate(self._arms)
            for name, values in arm.arrays().items()
        }
        return {
            **self.observed.arrays(),
            **derived,
            "points": self.dictionary.points,
            "lower": self.dictionary.factor.packed,
            "reward_sum": np.array([self._reward_sum]),
            "next_choice": np.array([self._next_choice], dtype=np.intp),
            "forgotten": self.observed.forgotten_by_arm,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.observed = Observations.restored(arrays, self.n_arms, arrays["forgotten"])
        points, size = arrays["points"], len(arrays["points"])
        check_floats(points, (size, self.observed.dimension))
        check_floats(arrays["lower"], (size * (size + 1) // 2,))
        check_floats(arrays["reward_sum"], (1,))
        self.dictionary = Dictionary(points, Triangle(arrays["lower"], size))
        if size and self.dictionary.factor.diagonal.min() <= 0:
            raise ValueError("a factor's diagonal is not positive")
        self._reward_sum = float(arrays["reward_sum"][0])
        self._next_choice = checks.whole("next_choice", arrays["next_choice"].tolist()[0], least=1)
        for number in range(self.n_arms):
            own = {name: arrays[f"{name}{number}"] for name in ARRAYS}
            self._arms[number] = BoundedArm.restored(self.ridge, size, own)

    def assume(self, pending: Pending) -> None:
        """Have every arm count exactly the pending picks."""
        for number, state in enumerate(self._arms):
            waiting, beside = pending.get(number, ()), state.beside
            if len(beside.assumed) == len(waiting) == 0:
                continue
            if not starts_with(waiting, beside.assumed):
                state.retract()
            late = waiting[len(beside.assumed) :]
            if len(late) > MANY_PENDING:
                state.assume_many(late, *self.whiten(np.array(late)))
                continue
            for context in late:
                whitened = self.whiten(context)
                state.assume(context, whitened.features, float(whitened.residual))

    def whiten(self, contexts: FloatArray) -> Whitened:
        """Return φ and δ of contexts."""
        return self.dictionary.whiten(self.kernel, contexts)

    def _use(self, dictionary: Dictionary) -> None:
        """Take another dictionary and replay all rows."""
        arms, before = self._arms, self.dictionary
        self.dictionary = dictionary
        self._arms = [BoundedArm(self.ridge, len(dictionary)) for _ in arms]
        self._asked = None
        try:
            self._absorb(0)
        except BaseException:
            self._arms, self.dictionary = arms, before
            raise

    def _absorb(self, first: int) -> None:
        """Take in the observations from number ``first`` on."""
        log = self.observed
        rows = log.contexts[first:], log.arms[first:], log.rewards[first:]
        noise = log.noise[first:] if log.has_noise else None
        kernel, ridge = self.kernel, self.ridge
        self._add(sums_by_arm(self.dictionary, kernel, ridge, *rows, noise=noise))

    def _add(self, sums: Mapping[int, Statistics]) -> None:
        for arm, statistics in sums.items():
            self._arms[arm].absorb(statistics)

    def weights(self, arm: int) -> FloatArray:
        """Return the weights of kernel values in a mean: L⁻ᵀR⁻¹z with all rows folded in."""
        folded, prior = self._arms[arm].all_folded(), self.prior()
        z = folded.fit[0] - prior * folded.fit[1]
        return self.dictionary.factor.solve_transposed(folded.root.solve_transposed(z))


class BoundedPooled(Pooled):
    """Whitens contexts once, and solves once for each arm."""

    model: BoundedModel

    @lazy
    def posterior(self) -> Posterior:
        model, prior, (residual, solved) = self.model, self.model.prior(), self._solved
        mean, std = np.empty((2, len(self.contexts), len(self.arms)))
        for column, (arm, (q, v)) in enumerate(zip(self.arms, solved, strict=True)):
            mean[:, column] = prior + model.arm(arm).mean(q, v, prior)
            std[:, column] = root(residual + squares(q) - squares(v))
        gain = model.information_gain(self.arms)
        return Posterior(mean, std, gain, model.ridge, model.n_arms)

    def covariances(self, arm: int, reference: IntArray | FloatArray) -> FloatArray:
        # A reward moves means through the inducing points alone: δ is no part of a covariance.
        q, v = self._solved[1][arm]
        if is_places(reference):
            q_points, v_points = q[:, reference], v[:, reference]
        else:
            features = self.model.whiten(self.at(reference)).features
            q_points, v_points = self.model.arm(self.arms[arm]).solve_many(features, assumed=True)
        return np.asarray(q_points.T @ q - v_points.T @ v)

    @lazy
    def _solved(self) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
        """The contexts' δ, and q and v of each arm."""
        self.model.assume(self.pending)
        features, residual = self.model.whiten(self.contexts)
        arms = [self.model.arm(arm) for arm in self.arms]
        return residual, [arm.solve_many(features, assumed=True) for arm in arms]
