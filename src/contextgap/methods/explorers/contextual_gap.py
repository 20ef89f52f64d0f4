"""Contextual-Gap: the exploration phase of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.beliefs import leader_and_challenger
from contextgap.methods.explorers.base import GapExplorer, Moment


@dataclass(frozen=True)
class ContextualGap(GapExplorer):
    """Try the leader or its challenger, whichever has the wider interval.

    Where arms share what they learn, or cost differently: whichever shrinks the variance of their
    difference more, per cost.

    Examples
    --------
    >>> explorer = cg.explorers.ContextualGap()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    reason: ClassVar[str] = "the leader or its challenger, whichever says more"

    def pick(self, moment: Moment) -> int:
        """Return argmax of the width s over {J, j}, a tie going to the lower index.

        The leader J is argmin of the gap B, the challenger j argmax of the upper bound U over the
        other arms.
        """
        belief = moment.belief
        if belief.covariance is not None or moment.costs is not None:
            return more_informative(moment, int(belief.leader), int(belief.challenger))
        leader, challenger = leader_and_challenger(belief.lower, belief.upper)
        first, second = sorted((leader, challenger))
        return second if belief.half_width[second] > belief.half_width[first] else first


def more_informative(moment: Moment, leader: int, challenger: int) -> int:
    """Return the leader or the challenger, whichever says more about their difference, per cost."""
    # A reward of arm a shrinks the variance of the difference D by cov(a, D)² / (variance of a +
    # ridge): where arms have nothing in common, more the wider a is. A tie goes to the lower index.
    belief, costs = moment.belief, moment.costs
    covariance = np.diag(belief.std**2) if belief.covariance is None else belief.covariance
    with_difference = covariance[:, leader] - covariance[:, challenger]

    def shrinks(arm: int) -> float:
        by = float(with_difference[arm] ** 2 / (covariance[arm, arm] + moment.ridge))
        return by if costs is None else by / float(costs[arm])

    return max(sorted({leader, challenger}), key=shrinks)
