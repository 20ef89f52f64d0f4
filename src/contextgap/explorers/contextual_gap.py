"""Contextual-Gap: the exploration phase of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.explorers.base import Explorer, Moment, Pool, largest_gap


@dataclass(frozen=True)
class ContextualGap(Explorer):
    """Try the leader or its challenger, whichever has the wider interval."""

    reason: ClassVar[str] = "the wider of leader and challenger"

    def pick(self, moment: Moment) -> int:
        """Return argmax of width over {leader, challenger}."""
        belief = moment.belief
        leader, challenger = int(belief.leader), int(belief.challenger)
        first, second = sorted((leader, challenger))  # a tie goes to the lower index
        return second if belief.half_width[second] > belief.half_width[first] else first

    def choose(self, pool: Pool) -> int:
        """Return the context with the largest gap of its leader."""
        return largest_gap(pool)
