"""Contextual-Gap: the exploration phase of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.base.arrays import FloatArray
from contextgap.belief import Belief, leader_and_challenger
from contextgap.explorers.base import Explorer, Moment, Pool, largest_gap


@dataclass(frozen=True)
class ContextualGap(Explorer):
    """Try the leader or its challenger, whichever has the wider interval.

    Where arms share what they learn: whichever shrinks the variance of their difference more.
    """

    reason: ClassVar[str] = "the leader or its challenger, whichever tells more"

    def pick(self, moment: Moment) -> int:
        """Return argmax of width over {leader, challenger}."""
        belief = moment.belief
        if belief.covariance is not None:
            return _more_telling(belief.covariance, moment.ridge, belief)
        # A tie goes to the lower index.
        first, second = sorted(leader_and_challenger(belief.lower, belief.upper))
        return second if belief.half_width[second] > belief.half_width[first] else first

    def choose(self, pool: Pool) -> int:
        """Return the context whose leader has the largest gap."""
        return largest_gap(pool)


def _more_telling(covariance: FloatArray, ridge: float, belief: Belief) -> int:
    """Return the leader or the challenger, whichever tells more about their difference.

    A reward of arm a shrinks the variance of the difference D by cov(a, D)² / (variance of a +
    ridge). A tie goes to the lower index.
    """
    leader, challenger = int(belief.leader), int(belief.challenger)
    with_difference = covariance[:, leader] - covariance[:, challenger]

    def shrinks(arm: int) -> float:
        return float(with_difference[arm] ** 2 / (covariance[arm, arm] + ridge))

    return max(sorted({leader, challenger}), key=shrinks)
