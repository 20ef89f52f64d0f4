"""Exact posteriors of arms of which at most one pays at a context, as classes of a classifier.

Rewards have two values. Where one arm pays the high one, every other arm is taken to pay the low
one there: an *implied* reward, a row in that arm's factor with more noise than a real one. With two
arms, one pays where the other does not. A single success then says something about all arms, which
independent arms would have to find out one by one.

Whether that holds is not known beforehand. ``tuning.exclusive`` compares leave-one-out predictions
of real rewards with implied ones and without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.kernels import Kernel
from contextgap.models.arm import Arm, left_out
from contextgap.models.base import LeftOut
from contextgap.models.exact import ExactModel
from contextgap.models.observations import Observations


@dataclass(frozen=True)
class Exclusive:
    """What a reward of one arm implies for the others."""

    low: float
    high: float
    doubt: float  # the noise of an implied reward, in units of a real one's

    def __post_init__(self) -> None:
        if not checks.real("low", self.low) < checks.real("high", self.high):
            raise ValueError(f"low must be below high, got {self.low!r} and {self.high!r}")
        if checks.real("doubt", self.doubt) < 1:
            raise ValueError(f"doubt must be at least 1, got {self.doubt!r}")

    def implying(self, rewards: FloatArray, n_arms: int) -> NDArray[np.bool_]:
        """Return which rewards say what other arms would have paid."""
        certain = rewards == self.high
        return np.asarray(certain | (rewards == self.low) if n_arms == 2 else certain)

    def implied(self, reward: float) -> float:
        """Return what other arms would have paid."""
        return self.low if reward == self.high else self.high


class ExclusiveModel(ExactModel):
    """Exact posteriors with implied rewards.

    An arm's rows are its own rewards, and those implied from its first own reward on: an arm that
    was never tried, or has just been added, may be better than all others.
    """

    kind = "exclusive"
    file_version = 2
    related = implies = True

    def __init__(
        self,
        kernel: Kernel,
        ridge: float,
        n_arms: int,
        prior_mean: float | str = 0.0,
        **exclusive: Any,
    ) -> None:
        super().__init__(kernel, ridge, n_arms, prior_mean)
        self.alike = Exclusive(**{"low": 0.0, "high": 1.0, "doubt": 1.0, **exclusive})
        self._rows = [Rows(dtype=np.intp) for _ in range(n_arms)]
        self._unimplied: ExactModel | None = None

    def settings(self) -> dict[str, Any]:
        return asdict(self.alike)

    def rows(self, arm: int) -> IntArray:
        return self._rows[arm].view

    def row_noise(self, arm: int) -> FloatArray | None:
        return self._arms[arm].noise.view

    def of_own_rewards(self) -> ExactModel:
        # Kept up to date from one call to the next.
        log, own = self.observed, self._unimplied
        if own is None or own.n_arms != self.n_arms or len(own) > len(self):
            own = self._unimplied = ExactModel(
                self.kernel, self.ridge, self.n_arms, self.prior_mean
            )
        if len(own) < len(self):
            new = slice(len(own), None)
            noise = log.noise[new] if log.has_noise else None
            own.observe_many(log.contexts[new], log.arms[new], log.rewards[new], noise)
        return own

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        super().add_arm(features)
        self._rows.append(Rows(dtype=np.intp))

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        place, doubtful = len(self), noise + (self.alike.doubt - 1) * self.ridge
        implies = self.alike.implying(np.array([reward]), self.n_arms)[0]
        others = [other for other in range(self.n_arms) if implies and len(self._rows[other].view)]
        for each in dict.fromkeys([arm, *others]):
            told = (reward, noise) if each == arm else (self.alike.implied(reward), doubtful)
            self._arms[each].retract()
            self._arms[each].observe(*self._solved_now(context, each), *told)
        for each in dict.fromkeys([arm, *others]):
            self._rows[each].append(place)
            self._kept.pop(each, None)
        self.observed.append(context, arm, reward, noise)
        self._asked = None

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        first, told = len(self), np.zeros(len(arms)) if noise is None else noise
        implying = self.alike.implying(rewards, self.n_arms)
        implied = np.where(rewards == self.alike.high, self.alike.low, self.alike.high)
        added: dict[int, IntArray] = {}
        for arm in range(self.n_arms):
            own = arms == arm
            started = np.full(len(arms), True) if len(self._rows[arm].view) else own.cumsum() > 0
            new = added[arm] = np.flatnonzero(own | (implying & started))
            if not len(new):
                continue
            real = own[new]
            v = self.solved(contexts[new], arm)
            gram = self.kernel(contexts[new], contexts[new])
            values = np.where(real, rewards[new], implied[new])
            extra = told[new] + np.where(real, 0.0, (self.alike.doubt - 1) * self.ridge)
            self._arms[arm].observe_many(v, gram, values, extra)
        for arm, new in added.items():
            self._rows[arm].extend(first + new)
        self.observed.extend(contexts, arms, rewards, noise)
        self._asked, self._kept = None, {}

    def mark(self) -> Any:
        return len(self), super().mark()

    def rewind(self, mark: Any) -> None:
        size, arms = mark
        for arm, rows, (own, gain) in zip(self._arms, self._rows, arms, strict=True):
            arm.rewind(own, gain)
            rows.truncate(own)
        self.observed.truncate(size)
        self._asked, self._kept, self._unimplied = None, {}, None

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        # What an observation implies for other arms is left out with it.
        log, prior = self.observed, self.prior()
        posterior = self.posterior(log.contexts[places], arms)
        error = np.empty(len(places))
        for arm in sorted({*arms, *log.arms[places].tolist()}):
            rows = np.flatnonzero(np.isin(places, self.rows(arm)))
            if not len(rows):
                continue
            at = np.searchsorted(self.rows(arm), places[rows])
            errors, variance = left_out(self._arms[arm], prior, at, visits[rows])
            real = log.arms[places[rows]] == arm
            error[rows[real]] = errors[real]
            if arm in arms:
                told = log.rewards[places[rows]]
                implied = np.where(told == self.alike.high, self.alike.low, self.alike.high)
                column = list(arms).index(arm)
                posterior.mean[rows, column] = np.where(real, told, implied) - errors
                posterior.std[rows, column] = np.sqrt(variance)
        return LeftOut(posterior, error)

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        return [len(self.rows(arm)) for arm in arms]

    def snapshot(self) -> Self:
        other = super().snapshot()
        other._unimplied = None
        other.alike, other._rows = self.alike, [Rows.of(own.view) for own in self._rows]
        return other

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        log = self.observed = Observations.restored(arrays, self.n_arms)
        implying = self.alike.implying(log.rewards, self.n_arms)
        for number in range(self.n_arms):
            own = log.arms == number
            rows = np.flatnonzero(own | (implying & (own.cumsum() > 0)))
            doubtful = np.where(own[rows], 0.0, (self.alike.doubt - 1) * self.ridge)
            held = {name: arrays[f"{name}{number}"] for name in ("factor", "z", "w")}
            self._arms[number] = Arm.restored(self.ridge, log.noise[rows] + doubtful, held)
            self._rows[number] = Rows.of(rows)
