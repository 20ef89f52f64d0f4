"""Elimination: arms that cannot be the best are not tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.methods.explorers.base import Explorer, Moment, Pool, largest_gap


@dataclass(frozen=True)
class Elimination(Explorer):
    """Try the arm with the widest interval among those that may still be the best here."""

    reason: ClassVar[str] = "the widest interval among arms that may be the best"

    def pick(self, moment: Moment) -> int:
        """Return argmax of width over the arms that may be the best."""
        belief = moment.belief
        return int(np.where(belief.plausible, belief.half_width, -np.inf).argmax())

    def choose(self, pool: Pool) -> int:
        """Return the context whose leader has the largest gap."""
        return largest_gap(pool)
