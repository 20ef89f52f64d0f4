"""Beliefs about every arm at a context, and decisions: which arm was picked, and why."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.models import Posterior
from contextgap.widths import Width


class Belief:
    """Means, intervals and gaps of all arms; arms are the last axis of every array."""

    def __init__(self, posterior: Posterior, width: Width) -> None:
        self.mean = posterior.mean
        self.std = posterior.std
        self.half_width = width.half_width(posterior)
        self.upper = self.mean + self.half_width
        self.lower = self.mean - self.half_width

    def row(self, place: int) -> Self:
        """Return the belief at one of several contexts."""
        one = copy(self)
        for name, values in vars(self).items():
            vars(one)[name] = values[place].copy()
        return one

    @cached_property
    def gap(self) -> FloatArray:
        """Highest upper bound of the other arms minus the own lower bound; 0 for a single arm."""
        return gaps(self.lower, self.upper)

    @cached_property
    def leader(self) -> IntArray:
        """The arm with the smallest gap."""
        return np.asarray(self.gap.argmin(axis=-1))

    @cached_property
    def challenger(self) -> IntArray:
        """The arm other than the leader with the highest upper bound (a single arm is both)."""
        if self.upper.shape[-1] == 1:
            return self.leader
        is_leader = np.arange(self.upper.shape[-1]) == self.leader[..., None]
        return np.asarray(np.where(is_leader, -np.inf, self.upper).argmax(axis=-1))


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
    """Return the leader and the challenger at one context, defined as in ``Belief``.

    This is plain Python because, for as few numbers as there are arms, it is several times as fast.
    """
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
    """One pick, with everything that was believed when it was made.

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
        What is believed about each arm; a gap bounds the simple regret of picking that arm.
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

    @classmethod
    def of(cls, belief: Belief, arms: tuple[Label, ...], pick: int, reason: str) -> Decision:
        """Return the decision for arm number ``pick`` of a belief at one context."""
        arrays = (belief.mean, belief.std, belief.lower, belief.upper, belief.gap)
        for array in arrays:
            array.flags.writeable = False
        leader, challenger = arms[int(belief.leader)], arms[int(belief.challenger)]
        return cls(arms[pick], reason, leader, challenger, arms, *arrays)

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
        return "\n".join(lines)
