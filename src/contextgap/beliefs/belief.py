"""Beliefs about every arm at a context, and decisions: which arm was picked, and why."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import html
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.descriptors import lazy
from contextgap.base.labels import Label
from contextgap.beliefs.widths import Width
from contextgap.models import Posterior


class Belief:
    """Means, intervals and gaps of all arms; arms are the last axis of every array.

    Where arms share what they learn, their differences are known better than each of them, and gaps
    are bounds on differences. ``covariance`` is that of the arms, and ``apart`` the half width of
    every difference, arms by arms; both are None where arms have nothing in common.
    """

    def __init__(self, posterior: Posterior, width: Width) -> None:
        self.mean = posterior.mean
        self.std = posterior.std
        self.half_width = width.half_width(posterior)
        self.upper = self.mean + self.half_width
        self.lower = self.mean - self.half_width
        self.covariance = posterior.covariance
        self.apart: FloatArray | None = None
        if self.covariance is not None:
            differences = posterior._replace(std=std_of_differences(self.covariance))
            self.apart = width.half_width(differences)

    def row(self, place: int) -> Self:
        one = copy(self)
        for name, values in vars(self).items():
            vars(one)[name] = None if values is None else values[place].copy()
        return one

    def told(self, sign: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean, std, lower and upper of rewards as users tell them: −1 for costs."""
        if sign > 0:
            return self.mean, self.std, self.lower, self.upper
        return -self.mean, self.std, -self.upper, -self.lower

    @lazy
    def gap(self) -> FloatArray:
        """Highest upper bound of the other arms minus the own lower bound; 0 for a single arm.

        Where arms share: the highest upper bound of another arm's lead over this one.
        """
        if self.apart is None:
            return gaps(self.lower, self.upper)
        if self.mean.shape[-1] == 1:
            return np.zeros_like(self.mean)
        return np.asarray(self._leads(self.apart).max(axis=-1))

    @lazy
    def leader(self) -> IntArray:
        """The arm with the smallest gap."""
        return np.asarray(self.gap.argmin(axis=-1))

    @lazy
    def challenger(self) -> IntArray:
        """The arm other than the leader with the highest upper bound (a single arm is both).

        Where arms share: the arm with the highest upper bound of its lead over the leader.
        """
        if self.upper.shape[-1] == 1:
            return self.leader
        if self.apart is not None:
            rivals = self._leads(self.apart).argmax(axis=-1)
            return np.asarray(np.take_along_axis(rivals, self.leader[..., None], -1)[..., 0])
        is_leader = np.arange(self.upper.shape[-1]) == self.leader[..., None]
        return np.asarray(np.where(is_leader, -np.inf, self.upper).argmax(axis=-1))

    @property
    def plausible(self) -> NDArray[np.bool_]:
        """Whether each arm may still be the best: no other is better for certain."""
        if self.apart is None:
            return np.asarray(self.upper >= self.lower.max(axis=-1, keepdims=True))
        certain = self.mean[..., None, :] - self.mean[..., None] - self.apart
        return np.asarray((certain <= 0).all(axis=-1))

    def std_from(self, arm: int) -> FloatArray:
        """Return the standard deviation of every arm's difference from one, at one context."""
        if self.covariance is None:
            return np.asarray(np.hypot(self.std, self.std[arm]))
        return np.asarray(std_of_differences(self.covariance)[arm])

    def draws(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return random values at one context, shape (count, arms); half widths are their stds."""
        normals = rng.standard_normal((count, len(self.mean)))
        if self.covariance is None:
            return np.asarray(self.mean + self.half_width * normals)
        share = np.divide(
            self.half_width, self.std, out=np.zeros_like(self.std), where=self.std > 0
        )
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.mean + share * (normals @ root.T))

    def _leads(self, apart: FloatArray) -> FloatArray:
        """Upper bounds of the lead of arm b (last axis) over arm a (the one before)."""
        leads = self.mean[..., None, :] - self.mean[..., None] + apart
        own = np.arange(self.mean.shape[-1])
        leads[..., own, own] = -np.inf
        return np.asarray(leads)


def std_of_differences(covariance: FloatArray) -> FloatArray:
    """Return the standard deviation of the difference of every two arms, arms by arms."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    apart = variance[..., None] + variance[..., None, :] - 2 * covariance
    return np.asarray(np.sqrt(np.maximum(apart, 0.0)))


def gaps(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return every arm's gap (the paper's B, section 4.2) from intervals, arms last."""
    if upper.shape[-1] == 1:
        return np.zeros_like(upper)
    rival = highest_other(upper)
    rival -= lower
    return rival


def highest_other(values: FloatArray) -> FloatArray:
    """Return, for each of two or more arms, the highest value of the other arms."""
    ordered = values.copy()
    ordered.partition(-2, axis=-1)
    second, highest = ordered[..., -2:-1], ordered[..., -1:]
    # Where two arms share the highest value, second equals highest and either is right.
    return np.where(values == highest, second, highest)


def leader_and_challenger(lower: FloatArray, upper: FloatArray) -> tuple[int, int]:
    """Return the leader and the challenger at one context, defined as in ``Belief``."""
    # Plain Python because, for as few numbers as there are arms, it is several times as fast.
    lowers, uppers = lower.tolist(), upper.tolist()
    if len(uppers) == 1:
        return 0, 0
    highest = max(uppers)
    top = uppers.index(highest)
    second = max(uppers[:top] + uppers[top + 1 :])
    gap = [(second if u == highest else highest) - w for w, u in zip(lowers, uppers, strict=True)]
    leader = gap.index(min(gap))
    uppers[leader] = -math.inf
    return leader, uppers.index(max(uppers))


@dataclass(frozen=True)
class Decision:
    """One pick, with means, intervals and gaps of all arms at that time.

    Parameters
    ----------
    arm
        The arm picked.
    reason
        Why it was picked, in words.
    leader
        The arm with the smallest gap.
    challenger
        The arm with the highest upper bound, the leader excluded.
    arms
        All arms, in the order of the arrays.
    mean, std, lower, upper, gap
        What is believed about each arm's reward, or cost where rewards are costs, from observed
        rewards only. If the intervals hold, the regret of picking an arm is at most its gap.
    pending
        The number of picks whose reward has not arrived yet.
    pending_std
        The standard deviations if pending picks count as observed. The arm was picked by these.
        None if no pick is pending.
    propensity
        The probability with which the arm was picked, where the explorer draws and knows it.

    See Also
    --------
    Learner.decide : The arm to try.
    Policy.decide : The arm to deploy.

    Examples
    --------
    >>> decision = policy.decide([0.5, 0.0])
    >>> decision.arm, decision.reason
    ('right', 'deployed by HighestMean')
    >>> decision.mean.round(1)
    array([-0.5,  0.5])
    """

    arm: Label
    reason: str
    leader: Label
    challenger: Label
    arms: tuple[Label, ...]
    mean: FloatArray = field(repr=False)
    std: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    gap: FloatArray = field(repr=False)
    pending: int = 0
    pending_std: FloatArray | None = field(default=None, repr=False)
    propensity: float | None = None

    @classmethod
    def of(
        cls,
        belief: Belief,
        arms: tuple[Label, ...],
        pick: int,
        reason: str,
        sign: float = 1.0,
        propensity: float | None = None,
    ) -> Decision:
        """Return the decision for arm number ``pick`` at one context; the sign is −1 for costs."""
        arrays = (*belief.told(sign), belief.gap)
        for array in arrays:
            array.flags.writeable = False
        leader, challenger = arms[int(belief.leader)], arms[int(belief.challenger)]
        return cls(arms[pick], reason, leader, challenger, arms, *arrays, propensity=propensity)

    def __str__(self) -> str:
        size = max(3, *(len(str(arm)) for arm in self.arms))
        lines = [f"{self.arm}: {self.reason}"]
        lines.append(
            f"  {'arm':{size}} {'mean':>10} {'std':>10} {'lower':>10} {'upper':>10} {'gap':>10}"
        )
        for i, arm in enumerate(self.arms):
            numbers = (self.mean[i], self.std[i], self.lower[i], self.upper[i], self.gap[i])
            row = " ".join(f"{number:10.4g}" for number in numbers)
            roles = [name for name in ("leader", "challenger") if getattr(self, name) == arm]
            mark = ">" if arm == self.arm else " "
            lines.append(f"{mark} {arm!s:{size}} {row}  {' '.join(roles)}".rstrip())
        if self.pending_std is not None:
            stds = ", ".join(
                f"{arm} {std:.4g}" for arm, std in zip(self.arms, self.pending_std, strict=True)
            )
            lines.append(f"  picked with {self.pending} pending counted as observed: std {stds}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = (self.mean, self.std, self.lower, self.upper, self.gap)
        rows = [
            [
                arm,
                *(float(column[place]) for column in columns),
                ", ".join(n for n in ("leader", "challenger") if getattr(self, n) == arm),
            ]
            for place, arm in enumerate(self.arms)
        ]
        header = ["arm", "mean", "std", "lower", "upper", "gap", ""]
        picked = [self.arms.index(self.arm)]
        return html.table(f"{self.arm}: {self.reason}", header, rows, picked)
