"""Exact posteriors of rewards that drift: what was observed says less as it ages.

An arm's expected reward at a context is an Ornstein–Uhlenbeck process in time, which is counted in
observations of all arms. Two observations, t apart, have covariance

    k(x, x')·2^(−t/h)

with the half life h; what is asked for is the expected reward *now*, at the time of the next
observation. The time of an observation never changes, so the factor of K∘T + ridge·I grows by rows
as without ageing, and only the kernel values at a new context are multiplied by how far each
observation has decayed. With T = 1 this is the exact model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.base import Follower, Support
from contextgap.models.exact import ExactModel, ExactPredictor

# Exports divide by what is left of an observation; below this nothing of it shows in any digit.
_LEAST = 1e-16


@dataclass(frozen=True)
class Ageing:
    """After how many observations what one of them says is correlated by a half with the truth."""

    half_life: float

    def __post_init__(self) -> None:
        half_life = checks.positive("half_life", self.half_life, "a number of rewards such as 500")
        object.__setattr__(self, "half_life", half_life)

    def correlations(self, one: FloatArray | IntArray, two: FloatArray | IntArray) -> FloatArray:
        """Return T between times, shape (one, two)."""
        return np.exp2(-np.abs(np.subtract.outer(one, two)) / self.half_life)


class AgeingModel(ExactModel):
    """Exact posteriors now, from observations that age.

    An earlier step of the history is what was observed by then says about now: the rewards of then
    are not to be had any more.
    """

    kind = "ageing"
    file_version = 2
    approximate = True  # widths guarantee nothing about rewards that drift

    def __init__(
        self,
        kernel: Kernel,
        ridge: float,
        n_arms: int,
        prior_mean: float | str = 0.0,
        half_life: float = 1.0,
    ) -> None:
        super().__init__(kernel, ridge, n_arms, prior_mean)
        self.alike = Ageing(half_life)

    def settings(self) -> dict[str, Any]:
        return asdict(self.alike)

    def left(self, arm: int) -> FloatArray:
        """Return the correlation of each of an arm's observations with now."""
        return np.asarray(np.exp2((self.rows(arm) - len(self)) / self.alike.half_life))

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        super().observe(context, arm, reward, noise)
        for state in self._arms:  # pending picks are to come, so they are of now
            state.retract()

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        own_noise = np.zeros(len(arms)) if noise is None else noise
        for arm in np.unique(arms):
            new = np.flatnonzero(arms == arm)
            # L⁻¹k as of now, and from now on what was observed before decays further.
            v = self.solved(contexts[new], arm) * np.exp2(-new / self.alike.half_life)
            gram = self.kernel(contexts[new], contexts[new]) * self.alike.correlations(new, new)
            self._arms[arm].observe_many(v, gram, rewards[new], own_noise[new])
        self.observed.extend(contexts, arms, rewards, noise)
        self._asked, self._kept = None, {}
        for state in self._arms:
            state.retract()

    def cross(self, points: FloatArray, arm: int, contexts: FloatArray) -> FloatArray:
        values, left = super().cross(points, arm, contexts), self.left(arm)
        values[: len(left)] *= left[:, None]
        return values

    def _own(self, values: FloatArray, arm: int, starts: list[int]) -> FloatArray:
        own, left = super()._own(values, arm, starts), self.left(arm)
        own[: len(left)] *= left if own.ndim == 1 else left[:, None]
        return own

    def follow(self, points: FloatArray | None = None) -> Follower:
        # What is followed row by row would have to decay with every reward of any arm.
        return Follower(self, points)

    def predictor(self, arms: Sequence[int]) -> ExactPredictor:
        return AgeingPredictor(self, arms)

    def supports(self, arms: Sequence[int]) -> list[Support]:
        # |L⁻¹(left∘k)| = |(L/left)⁻¹k| with rows divided: now is fixed, and exports know no time.
        found = []
        for arm, each in zip(arms, super().supports(arms), strict=True):
            left = np.maximum(self.left(arm), _LEAST)
            (sign, factor), size = each.factors[0], len(left)
            rows = np.repeat(left, np.arange(1, size + 1))
            noise = self.arm(arm).noise.view / np.square(left)
            weights, factors = each.weights * left, ((sign, factor / rows),)
            found.append(each._replace(weights=weights, factors=factors, noise=noise))
        return found

    def snapshot(self) -> Self:
        other = super().snapshot()
        other.alike = self.alike
        return other


class AgeingPredictor(ExactPredictor):
    """Means and bounds as those of the exact model, from kernel values that have decayed."""

    model: AgeingModel

    def _values(self, contexts: FloatArray) -> Iterator[Any]:
        for column, part, values in super()._values(contexts):
            yield column, part, values * self.model.left(self.arms[column])
