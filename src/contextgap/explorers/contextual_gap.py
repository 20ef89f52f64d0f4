"""Contextual-Gap: the exploration phase of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.belief import leader_and_challenger
from contextgap.explorers.base import Explorer, Moment, Pool, largest_gap


@dataclass(frozen=True)
class ContextualGap(Explorer):
    """Try the leader or its challenger, whichever has the wider interval."""

    reason: ClassVar[str] = "the wider of leader and challenger"

    def pick(self, moment: Moment) -> int:
        """Return argmax of width over {leader, challenger}."""
        belief = moment.belief
        # A tie goes to the lower index.
        first, second = sorted(leader_and_challenger(belief.lower, belief.upper))
        return second if belief.half_width[second] > belief.half_width[first] else first

    def choose(self, pool: Pool) -> int:
        """Return the context whose leader has the largest gap."""
        return largest_gap(pool)
