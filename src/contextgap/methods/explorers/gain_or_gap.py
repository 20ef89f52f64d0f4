"""The knowledge gradient where arms learn for themselves, Contextual-Gap where they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.methods.explorers.base import Explorer, Moment, Pool
from contextgap.methods.explorers.contextual_gap import ContextualGap
from contextgap.methods.explorers.knowledge_gradient import KnowledgeGradient

_REPEATS = 256  # rewards of one arm looked ahead to


@dataclass(frozen=True)
class GainOrGap(Explorer):
    """Try the arm with the highest expected gain per reward, or do as Contextual-Gap.

    The gain is that of the knowledge gradient with repeated rewards. Where arms share what they
    learn, computing it takes many times as long, and Contextual-Gap picks instead.
    """

    reason: ClassVar[str] = "the highest expected gain, or where arms share the one that tells more"

    def pick(self, moment: Moment) -> int:
        """Return the pick of the explorer that suits the model."""
        return _suited(moment.shares).pick(moment)

    def choose(self, pool: Pool) -> int:
        """Return the context chosen by the explorer that suits the model."""
        return _suited(pool.shares).choose(pool)


def _suited(shares: bool) -> Explorer:
    return ContextualGap() if shares else KnowledgeGradient(repeats=_REPEATS)
