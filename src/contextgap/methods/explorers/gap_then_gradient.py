"""Contextual-Gap while the best arm at the context is in doubt, then the knowledge gradient.

Contextual-Gap looks at the current context alone. Once the best arm is settled there, another
reward of the leader or its challenger changes no decision, and which of them is tried hardly
matters. A reward can still help elsewhere, and the knowledge gradient knows where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.beliefs.belief import Belief
from contextgap.methods.explorers.base import Explorer, Moment, Pool, largest_gap
from contextgap.methods.explorers.contextual_gap import ContextualGap
from contextgap.methods.explorers.knowledge_gradient import KnowledgeGradient

_WIDTHS = 2.0  # with intervals so many times as wide, the leader's gap is to be negative


@dataclass(frozen=True)
class GapThenGradient(Explorer):
    """Do as Contextual-Gap where the best arm is in doubt, else as the knowledge gradient.

    It is in doubt while the challenger's upper bound exceeds the leader's lower bound, both with
    intervals twice as wide.
    """

    reason: ClassVar[str] = "the leader or its challenger, or once settled the highest gain"

    def pick(self, moment: Moment) -> int:
        """Return Contextual-Gap's pick, or the knowledge gradient's if the best arm is settled."""
        rule = ContextualGap() if in_doubt(moment.belief) else KnowledgeGradient()
        return rule.pick(moment)

    def choose(self, pool: Pool) -> int:
        """Return the context with the largest gap, or with the highest gain if it is settled."""
        row = largest_gap(pool)
        return row if in_doubt(pool.belief.row(row)) else KnowledgeGradient().choose(pool)


def in_doubt(belief: Belief) -> bool:
    """Whether the challenger at one context may be better than the leader."""
    lead = belief.mean[belief.leader] - belief.mean[belief.challenger]
    # The gap of the leader is the half width of their difference, less the lead.
    return bool(_WIDTHS * (belief.gap[belief.leader] + lead) > lead)
