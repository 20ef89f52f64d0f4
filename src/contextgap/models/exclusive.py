"""Exact posteriors of arms of which at most one pays at a context, as classes of a classifier.

Rewards have two values. Where one arm pays the high one, every other arm is taken to pay the low
one there: an *implied* reward, a row in that arm's factor with more noise than a real one. With two
arms, one pays where the other does not. A single success then says something about all arms, which
independent arms would have to find out one by one.

Whether that holds is not known beforehand. ``tuning.exclusive`` compares leave-one-out predictions
of real rewards with implied ones and without.

What policies rest on goes one step further (``ClassModel``). A failure says something about the
other arms, too, and a success may be an error of measurement. So, as the expectation step of
expectation maximisation, every arm's reward at every observed context is replaced by what it is
expected to be, given the reward observed there and predictions without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.kernels import Kernel
from contextgap.models.arm import Arm, left_out, precisions_without
from contextgap.models.base import NOTHING_PENDING, LeftOut, Model, Pending, Posterior
from contextgap.models.exact import ExactModel
from contextgap.models.observations import Observations, check_floats

_OPERATIONS = 5e10  # that expected rewards may take, about: a few seconds
# How probable the most probable arm must be, on average over observed contexts. Below that, as
# where arms may pay together, expected rewards are no better than implied ones.
_SURE = 0.7
# Where the sharpness, ln τ, and the logit of twice the share of flips are looked for; the latter's
# losses are the columns of a table.
_SHARPNESSES = np.linspace(-4.0, 0.5, 19).tolist()
_LOGITS = np.linspace(-6.0, 3.0, 19)
_FLIPS = 0.5 / (1.0 + np.exp(-_LOGITS))[:, None]


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


class _Related(ExactModel):
    """What models of arms that exclude each other have in common."""

    file_version = 2
    related = True

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

    def settings(self) -> dict[str, Any]:
        return asdict(self.alike)


class ExclusiveModel(_Related):
    """Exact posteriors with implied rewards.

    An arm's rows are its own rewards, and those implied from its first own reward on: an arm that
    was never tried, or has just been added, may be better than all others.
    """

    kind = "exclusive"
    implies = True

    def __init__(
        self, kernel: Kernel, ridge: float, n_arms: int, *prior_mean: float | str, **exclusive: Any
    ) -> None:
        super().__init__(kernel, ridge, n_arms, *prior_mean, **exclusive)
        self._rows = [Rows(dtype=np.intp) for _ in range(n_arms)]
        self._unimplied: ExactModel | None = None
        self._deployed: tuple[int, Model | None] = (0, None)

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

    def for_deployment(self) -> Model:
        log = self.observed
        costs = sum(float(len(own.view)) ** 3 for own in self._rows) + float(len(log)) ** 3
        known = np.isin(log.rewards, (self.alike.low, self.alike.high)).all()
        tried = all(log.count(arm) for arm in range(self.n_arms))
        if not tried or not known or log.has_noise or log.forgotten or costs > _OPERATIONS:
            return self
        if self._deployed[0] != len(self):
            self._deployed = len(self), ClassModel.of(self)
        return self._deployed[1] or self

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
        self._asked, self._kept, self._unimplied, self._deployed = None, {}, None, (0, None)

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
        other._unimplied, other._deployed = None, self._deployed
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


class ClassModel(_Related):
    """Posteriors from what every arm's reward at every observed context is expected to be.

    One factor serves all arms. Where it is uncertain which arm pays at an observed context, that
    row has more noise. The model does not learn; it is made anew from an ``ExclusiveModel``.
    """

    kind = "classes"

    def __init__(
        self, kernel: Kernel, ridge: float, n_arms: int, *prior_mean: float | str, **exclusive: Any
    ) -> None:
        super().__init__(kernel, ridge, n_arms, *prior_mean, **exclusive)
        self._expected = np.empty((0, n_arms))  # rewards, by observed context and arm

    @classmethod
    def of(cls, model: ExclusiveModel) -> Self | None:
        """Return what a model's observations say, or None where they leave open which arm pays."""
        relation, log, n_arms = model.alike, model.observed, model.n_arms
        unit = relation.high - relation.low
        gram = model.kernel(log.contexts, log.contexts)
        means = (_left_out_means(model, gram) - relation.low) / unit
        paid = log.rewards == relation.high
        chances, flips = calibrated(means, log.arms, paid)
        as_paid = np.where(paid, 1.0 - flips, flips)[:, None]  # if the arm tried is the right one
        chances *= np.where(np.arange(n_arms) == log.arms[:, None], as_paid, 1.0 - as_paid)
        chances /= chances.sum(axis=1, keepdims=True)
        surest = chances.max(axis=1)
        if surest.mean() < _SURE:
            return None
        low, span = relation.low + flips * unit, (1.0 - 2.0 * flips) * unit
        other = cls(model.kernel, model.ridge, n_arms, model.prior_mean, **asdict(relation))
        other.observed = log.snapshot()
        noise = model.ridge * (1.0 / surest - 1.0)
        arm, values = Arm(model.ridge), low + span * chances
        arm.observe_many(np.empty((0, len(log))), gram, values[:, 0], noise)
        other._tell(arm, values)
        return other

    def _tell(self, arm: Arm, values: FloatArray) -> None:
        self._expected = values
        self._arms = [arm.retold(own) for own in values.T]

    def prior(self) -> float:
        return float(self._expected.mean()) if len(self._expected) else super().prior()

    def rows(self, arm: int) -> IntArray:
        del arm
        return np.arange(len(self))

    def row_noise(self, arm: int) -> FloatArray | None:
        return self._arms[arm].noise.view

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        if contexts.ndim == 1 or pending or not len(arms):
            return super().posterior(contexts, arms, pending)
        return self.posterior_from(
            repeat(self.solved(contexts, arms[0]), len(arms)), contexts, arms
        )

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        # Expected rewards at other contexts depend a little on the reward that is left out.
        log, prior = self.observed, self.prior()
        others_out, variance = precisions_without(self._arms[0], places, visits)
        solved = np.stack([arm.dual(prior)[places] for arm in self._arms], axis=1)
        mean = self._expected[places] - solved / others_out[:, None]
        std = np.repeat(np.sqrt(variance)[:, None], len(arms), axis=1)
        gain = self.information_gain(arms)
        posterior = Posterior(mean[:, list(arms)], std, gain, self.ridge, self.n_arms)
        return LeftOut(posterior, log.rewards[places] - mean[range(len(places)), log.arms[places]])

    def learnt(self) -> Model:
        log, given = self.observed, (self.kernel, self.ridge, self.n_arms, self.prior_mean)
        model = ExclusiveModel(*given, **self.settings())
        model.observe_many(log.contexts, log.arms, log.rewards)
        model.observed.take_notes_from(log)
        return model

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        return [len(self)] * len(arms)

    def observe(self, *_told: Any, **_more: Any) -> None:
        raise TypeError("a model for deployment does not learn; resume from the policy")

    add_arm = observe_many = observe

    def snapshot(self) -> Self:
        other = super().snapshot()
        other.alike, other._expected = self.alike, self._expected
        return other

    def arrays(self) -> dict[str, NDArray[Any]]:
        self.assume(NOTHING_PENDING)
        arm = self._arms[0]
        own = {name: arm.arrays()[name] for name in ("factor", "w")}
        noise = arm.noise.view - self.ridge
        return {**self.observed.arrays(), **own, "expected": self._expected, "row_noise": noise}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.observed = Observations.restored(arrays, self.n_arms)
        check_floats(arrays["expected"], (len(self), self.n_arms))
        check_floats(arrays["row_noise"], (len(self),))
        told = {"z": arrays["w"], **{name: arrays[name] for name in ("factor", "w")}}
        self._tell(Arm.restored(self.ridge, arrays["row_noise"], told), arrays["expected"])


def _left_out_means(model: ExclusiveModel, gram: FloatArray) -> FloatArray:
    """Return all arms' means at every observed context, without the reward observed there."""
    log, prior = model.observed, model.prior()
    means = np.empty((len(log), model.n_arms))
    for number in range(model.n_arms):
        arm, rows = model.arm(number), model.rows(number)
        weights = arm.dual(prior)
        means[:, number] = prior + gram[:, rows] @ weights
        real = log.arms[rows] == number
        implied = np.where(log.rewards[rows] == model.alike.high, model.alike.low, model.alike.high)
        told = np.where(real, log.rewards[rows], implied)
        means[rows, number] = told - weights / arm.precisions()
    return means


def calibrated(
    means: FloatArray, arms: IntArray, paid: NDArray[np.bool_]
) -> tuple[FloatArray, float]:
    """Return the probabilities that each arm is the one that pays, and the share of flips.

    The probabilities are softmax(means/τ). An arm that pays is observed not to with the
    probability of a flip, and the other way round. Both numbers are the most probable ones given
    what the arms tried were observed to pay.
    """
    best, found = math.inf, (means, 0.0)
    for sharpness in _SHARPNESSES:
        chances = np.exp((means - means.max(axis=1, keepdims=True)) * math.exp(-sharpness))
        chances /= chances.sum(axis=1, keepdims=True)
        own = chances[np.arange(len(arms)), arms]
        expected = np.clip(_FLIPS + (1.0 - 2.0 * _FLIPS) * own, 1e-6, 1.0 - 1e-6)
        loss = -np.log(np.where(paid, expected, 1.0 - expected)).sum(axis=1)
        loss += 0.5 * (sharpness + 1.5) ** 2 + 0.5 * ((_LOGITS + 2.0) / 1.5) ** 2
        if loss.min() < best:
            best, found = float(loss.min()), (chances, float(_FLIPS[loss.argmin(), 0]))
    return found
