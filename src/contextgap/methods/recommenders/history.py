"""The look-back of Algorithm 1: the smallest gap over all steps of the exploration.

The paper drops it as computationally prohibitive. It is not. Prefixes of one forward substitution
give every earlier posterior, and most steps can be skipped: over a stretch of steps, with U2 the
second highest upper and L the highest lower among the arms,

    smallest gap ≥ U2 − L ≥ (second highest of the arms' least uppers) − (highest lower),

so a context skips every stretch whose bound is above the smallest gap it has found. Going backwards
finds small gaps first, since intervals shrink, and leaves few steps to evaluate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.beliefs import Belief, Width, gaps
from contextgap.models import KeepsHistory, Model

_STRETCH = 96  # steps bounded at once: more are faster to bound, fewer give tighter bounds


@dataclass(frozen=True)
class Choice:
    """Arms chosen for deployment.

    Parameters
    ----------
    arm
        Position of the chosen arm, one per context.
    gap
        Its gap, at the step it was chosen for: a bound on its regret if the intervals hold.
    """

    arm: IntArray
    gap: FloatArray


class _Intervals:
    """Every arm's interval at every context and step."""

    def __init__(self, lower: list[FloatArray], upper: list[FloatArray], states: IntArray) -> None:
        self._lower = lower  # each arm's, shape (states of the arm, contexts)
        self._upper = upper
        self._states = states  # row t: which state each arm is in at step t
        self.steps = len(states)
        self.contexts = lower[0].shape[1]

    def gap_bound(self, first: int, end: int) -> FloatArray:
        """Return, for every context, a lower bound on all gaps in steps first..end − 1."""
        starts, ends = self._states[first], self._states[end - 1] + 1
        highest, second, lowest = np.full((3, self.contexts), -np.inf)
        for lower, upper, a, b in zip(self._lower, self._upper, starts, ends, strict=True):
            least = upper[a] if b - a == 1 else upper[a:b].min(axis=0)
            most = lower[a] if b - a == 1 else lower[a:b].max(axis=0)
            np.maximum(second, np.minimum(highest, least), out=second)
            np.maximum(highest, least, out=highest)
            np.maximum(lowest, most, out=lowest)
        return np.asarray(second - lowest)

    def smallest_gaps(self, first: int, end: int, contexts: IntArray) -> FloatArray:
        """Return the smallest gap at steps first..end − 1, shape (steps, contexts)."""
        # With h the arm of highest upper U1, and U2 the second highest, the gap of any other arm a
        # is U1 − lower_a and that of h is U2 − lower_h. So the smallest is
        # min(U1 − max lower, U2 − lower_h), where max may run over h too since U1 ≥ U2.
        shape = (end - first, len(contexts))
        highest, second, lowest = (np.full(shape, -np.inf) for _ in range(3))
        lower_of_highest = np.empty(shape)
        for arm in range(len(self._lower)):
            lower = self._stretch(self._lower[arm], arm, first, end, contexts)
            upper = self._stretch(self._upper[arm], arm, first, end, contexts)
            np.maximum(second, np.minimum(highest, upper), out=second)
            np.putmask(lower_of_highest, upper > highest, lower)
            np.maximum(highest, upper, out=highest)
            np.maximum(lowest, lower, out=lowest)
        return np.asarray(np.minimum(highest - lowest, second - lower_of_highest))

    def gaps(self, steps: IntArray, contexts: IntArray) -> FloatArray:
        states = self._states[steps].T
        lower = [x[state, contexts] for x, state in zip(self._lower, states, strict=True)]
        upper = [x[state, contexts] for x, state in zip(self._upper, states, strict=True)]
        return gaps(np.stack(lower, axis=-1), np.stack(upper, axis=-1))

    def _stretch(
        self, values: FloatArray, arm: int, first: int, end: int, contexts: IntArray
    ) -> FloatArray:
        """An arm's values by step: each of its few states repeated for as long as it lasts."""
        states = self._states[first:end, arm]
        return np.asarray(values[states[0] : states[-1] + 1][:, contexts][states - states[0]])


def smallest_gap_in_history(
    model: KeepsHistory, contexts: FloatArray, arms: Sequence[int], width: Width, since: int
) -> Choice:
    """Return, for every context, the leader of the step with the smallest gap.

    Steps are states of the model: after ``since`` observations, one more, ..., all of them. Ties go
    to the earlier step.
    """
    best_step = np.zeros(len(contexts), dtype=np.intp)
    if len(arms) == 1:
        return Choice(best_step, np.zeros(len(contexts)))
    if isinstance(model, Model) and model.shares:  # gaps then bound differences
        look_back, history = LookBack(None), model.history(contexts, arms, since)
        for step in range(len(history.steps)):
            look_back.add(Belief(history.at(step), width))
        return look_back.choice()
    smallest = np.full(len(contexts), np.inf)
    intervals = _intervals(model, contexts, arms, width, since)
    for first in reversed(range(0, intervals.steps, _STRETCH)):
        end = min(first + _STRETCH, intervals.steps)
        open_ = np.flatnonzero(intervals.gap_bound(first, end) <= smallest)
        if not len(open_):
            continue
        found = intervals.smallest_gaps(first, end, open_)
        step = found.argmin(axis=0)
        gap = found[step, np.arange(len(open_))]
        better = gap <= smallest[open_]
        smallest[open_[better]] = gap[better]
        best_step[open_[better]] = first + step[better]
    at_best = intervals.gaps(best_step, np.arange(len(contexts)))
    return Choice(at_best.argmin(axis=-1), at_best.min(axis=-1))


def _intervals(
    model: KeepsHistory, contexts: FloatArray, arms: Sequence[int], width: Width, since: int
) -> _Intervals:
    lower, upper = [], []
    states, steps, _ = model.history(contexts, arms, since)
    for posterior in states:
        half = width.half_width(posterior)
        if np.may_share_memory(half, posterior.std):
            half = half.copy()
        # In place: these arrays are large, and used nowhere else.
        upper.append(np.add(posterior.mean, half, out=posterior.std))
        lower.append(np.subtract(posterior.mean, half, out=posterior.mean))
    return _Intervals(lower, upper, steps)


class LookBack:
    """The smallest gap over the ``last`` steps, or over all if None, updated as steps happen.

    Each step uses the prior mean of its time, not the current one as a policy does.
    """

    def __init__(self, last: int | None) -> None:
        self.last = last
        self._steps: deque[Choice] = deque(maxlen=last)

    @property
    def empty(self) -> bool:
        return not self._steps

    def add(self, belief: Belief) -> None:
        """Take in the belief after one more step."""
        found = Choice(belief.leader, belief.gap.min(axis=-1))
        if self.last is None and self._steps:
            found = _earlier_or_smaller(self._steps.pop(), found)
        self._steps.append(found)

    def choice(self) -> Choice:
        """Return, for every context, the leader of the step with the smallest gap."""
        return reduce(_earlier_or_smaller, self._steps)


def _earlier_or_smaller(earlier: Choice, later: Choice) -> Choice:
    better = later.gap < earlier.gap
    return Choice(
        np.where(better, later.arm, earlier.arm), np.where(better, later.gap, earlier.gap)
    )
