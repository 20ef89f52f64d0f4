"""EB-TCε: the empirical best and its challenger by transportation cost, on posteriors.

Jourdan, Degenne and Kaufmann, "An ε-Best-Arm Identification Algorithm for Fixed-Confidence and
Beyond" (2023), for arms without contexts. There, the evidence that arm a is at least ε worse than
the leader is (difference of the means + ε) / √(1/pulls + 1/pulls of the leader). Here the standard
deviation of the difference at the current context takes the place of the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.methods.explorers.base import GapExplorer, Moment
from contextgap.methods.explorers.contextual_gap import more_informative


@dataclass(frozen=True)
class EBTC(GapExplorer):
    """Try the highest mean or the arm least clearly worse, whichever says more about the two.

    .. versionadded:: 0.3

    Parameters
    ----------
    slack
        The algorithm's ε, in the unit of rewards: arms whose reward is so close to the best need
        not be distinguished from it. With 0 the rule does not depend on the unit.

    Examples
    --------
    >>> explorer = cg.explorers.EBTC()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    slack: float = 0.0
    reason: ClassVar[str] = "the highest mean or its closest challenger, whichever says more"

    def __post_init__(self) -> None:
        object.__setattr__(self, "slack", checks.at_least("slack", self.slack, 0, "a reward"))

    def pick(self, moment: Moment) -> int:
        """Return argmax of mean or argmin of (lead + slack) / std of the lead."""
        belief = moment.belief
        leader = int(belief.mean.argmax())
        if len(belief.mean) == 1:
            return leader
        lead = belief.mean[leader] - belief.mean + self.slack
        spread = belief.std_from(leader)
        cost = np.divide(lead, spread, out=np.full_like(lead, np.inf), where=spread > 0)
        cost[leader] = np.inf
        others = np.arange(len(lead)) != leader
        # Where every lead is certain, the smallest.
        by = cost if np.isfinite(cost).any() else np.where(others, lead, np.inf)
        return more_informative(moment, leader, int(by.argmin()))
