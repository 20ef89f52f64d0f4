"""Contextual-Gap while the best arm at the context is in doubt, then the knowledge gradient.

Contextual-Gap considers the current context alone. Once the best arm is settled there, another
reward of the leader or its challenger changes no decision at this context; the knowledge gradient
tries the arm whose reward improves decisions at others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.beliefs.belief import Belief
from contextgap.methods.explorers.base import Explorer, Moment, Pool
from contextgap.methods.explorers.contextual_gap import ContextualGap
from contextgap.methods.explorers.knowledge_gradient import KnowledgeGradient

_WIDTHS = 2.0  # of 1, 2 and 3, the lowest regret on most problems: docs/results.md


@dataclass(frozen=True)
class GapThenGradient(Explorer):
    """Do as Contextual-Gap where the best arm is in doubt, else as the knowledge gradient.

    It is in doubt while the challenger's upper bound exceeds the leader's lower bound, both with
    intervals twice as wide as the learner's. Where arms share what they learn, the knowledge
    gradient takes several times as long without a lower regret, and Contextual-Gap always picks.

    .. versionadded:: 0.3

    Examples
    --------
    >>> explorer = cg.explorers.GapThenGradient()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    reason: ClassVar[str] = "the leader or its challenger, or once settled the highest gain"

    def pick(self, moment: Moment) -> int:
        """Return Contextual-Gap's pick, or the knowledge gradient's if the best arm is settled."""
        by_gap = moment.shares or in_doubt(moment.belief)
        return (ContextualGap() if by_gap else KnowledgeGradient()).pick(moment)

    def choose(self, pool: Pool) -> int:
        """Return the context with the highest gain, or where arms share with the largest gap."""
        return (ContextualGap() if pool.shares else KnowledgeGradient()).choose(pool)


def in_doubt(belief: Belief) -> bool:
    """Whether the challenger at one context may be better than the leader."""
    lead = belief.mean[belief.leader] - belief.mean[belief.challenger]
    # The leader's gap is the half width of the difference less the lead.
    return bool(_WIDTHS * (belief.gap[belief.leader] + lead) > lead)
