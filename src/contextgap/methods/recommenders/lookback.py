"""The look-back of Algorithm 1, updated at every step as it happens.

The module ``history`` computes the same from the factors afterwards.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from contextgap.beliefs.belief import Belief
from contextgap.methods.recommenders.history import Choice


class LookBack:
    """The smallest gap over the ``last`` steps, or over all if None, at fixed contexts.

    Each step uses the prior mean of its time, whereas a policy with ``prior_mean="auto"`` looks
    back with the current one.
    """

    def __init__(self, last: int | None) -> None:
        self.last = last
        self._steps: deque[Choice] = deque(maxlen=last)
        self._merge = last is None

    @property
    def empty(self) -> bool:
        """Whether no step was taken in yet."""
        return not self._steps

    def add(self, belief: Belief) -> None:
        """Take in the belief after one more step."""
        found = Choice(belief.leader, belief.gap.min(axis=-1))
        if self._merge and self._steps:
            found = _earlier_or_smaller(self._steps.pop(), found)
        self._steps.append(found)

    def choice(self) -> Choice:
        """Return, for every context, the leader of the step with the smallest gap."""
        steps = list(self._steps)
        best = steps[0]
        for later in steps[1:]:
            best = _earlier_or_smaller(best, later)
        return best


def _earlier_or_smaller(earlier: Choice, later: Choice) -> Choice:
    better = later.gap < earlier.gap
    return Choice(
        np.where(better, later.arm, earlier.arm), np.where(better, later.gap, earlier.gap)
    )
