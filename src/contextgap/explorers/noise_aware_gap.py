"""Contextual-Gap where rewards have noise, and the knowledge gradient where they have hardly any.

Contextual-Gap spends rewards on leader and challenger even where it is certain of the leader.
With noise that is no loss: such rewards confirm what may be wrong. Without noise they teach nothing
new, while other arms still have much to tell about other contexts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.explorers.base import Explorer, Moment, Pool
from contextgap.explorers.contextual_gap import ContextualGap
from contextgap.explorers.knowledge_gradient import KnowledgeGradient

# The ridge over an arm's variance before any reward, up to which rewards have hardly any noise.
_HARDLY_ANY = 1e-3


@dataclass(frozen=True)
class NoiseAwareGap(Explorer):
    """Do as Contextual-Gap, or as the knowledge gradient where rewards have hardly any noise.

    That is the case where the ridge is below a thousandth of an arm's variance before any reward.
    """

    reason: ClassVar[str] = "leader or challenger, or the highest gain where there is no noise"

    def pick(self, moment: Moment) -> int:
        """Return the pick of the explorer that suits the noise."""
        return _suited(moment.ridge, moment.variance).pick(moment)

    def choose(self, pool: Pool) -> int:
        """Return the context chosen by the explorer that suits the noise."""
        return _suited(pool.ridge, float(pool.variance.mean())).choose(pool)


def _suited(ridge: float, variance: float) -> Explorer:
    return KnowledgeGradient() if ridge < _HARDLY_ANY * variance else ContextualGap()
