"""Contextual-Gap that does not spend rewards on contexts where the decision is settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.explorers.base import Moment
from contextgap.explorers.contextual_gap import ContextualGap


@dataclass(frozen=True)
class SparingGap(ContextualGap):
    """Do as Contextual-Gap where arms may change places; elsewhere try any arm, at random.

    Where the leader's gap is not above 0 no arm's upper bound reaches above its lower bound, so
    that a reward of leader or challenger settles nothing. One of any arm helps to learn that arm
    elsewhere, and finds out where intervals are wrong. It pays where there is no noise and
    exploring goes on long after decisions seem settled; before that it costs a little.
    """

    reason: ClassVar[str] = "leader or challenger, or any arm where the leader is certain"

    def pick(self, moment: Moment) -> int:
        """Return Contextual-Gap's pick, or a random arm where the smallest gap is not above 0."""
        belief = moment.belief
        if len(belief.mean) > 1 and belief.gap.min() <= 0:
            return int(moment.rng.integers(len(belief.mean)))
        return super().pick(moment)
