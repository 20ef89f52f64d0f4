"""Picks whose reward has not come yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.models import Eligible

_DECIMALS = 3  # a number with fewer is not taken for another one, rounded


class Asked(NamedTuple):
    """The arms among which a pick was made, None for all, and its propensity, if it is known."""

    eligible: Eligible = None
    propensity: float | None = None


@dataclass
class Pending:
    """Contexts picked for each arm whose rewards have not been told, oldest first, by arm index.

    ``eligible`` holds, in the same order, the arms among which each pick was made, and
    ``propensities`` the probability with which it was.
    """

    by_arm: dict[int, list[FloatArray]] = field(default_factory=dict)
    eligible: dict[int, list[Eligible]] = field(default_factory=dict)
    propensities: dict[int, list[float | None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum([len(waiting) for waiting in self.by_arm.values()])

    def copy(self) -> Pending:
        """Return a copy; contexts are shared."""
        return Pending(
            {arm: list(waiting) for arm, waiting in self.by_arm.items()},
            {arm: list(sets) for arm, sets in self.eligible.items()},
            {arm: list(chances) for arm, chances in self.propensities.items()},
        )

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> Pending:
        """Return the same picks with other contexts."""
        by_arm = {arm: list(map(change, waiting)) for arm, waiting in self.by_arm.items()}
        return Pending(by_arm, self.eligible, self.propensities)

    def count(self, arm: int) -> int:
        """Return how many picks of an arm wait for their reward."""
        return len(self.by_arm.get(arm, ()))

    def add(
        self,
        context: FloatArray,
        arm: int,
        eligible: Eligible = None,
        propensity: float | None = None,
    ) -> None:
        """Remember a pick, among which arms it was made, None for all, and its propensity."""
        self.propensities.setdefault(arm, []).append(propensity)
        self.by_arm.setdefault(arm, []).append(context)
        self.eligible.setdefault(arm, []).append(eligible)

    def find(self, context: FloatArray, arm: int) -> int | None:
        """Return the place of the oldest waiting pick of an arm at a context, if there is one."""
        given = context.tolist()  # as short as contexts are, the fastest way
        for place, candidate in enumerate(self.by_arm.get(arm, ())):
            if candidate.tolist() == given:
                return place
        return None

    def find_rounded(self, context: FloatArray, arm: int) -> int | None:
        """Return the place of the oldest waiting pick that equals a context but for rounding."""
        waiting = np.array(self.by_arm.get(arm, []))
        if not len(waiting):
            return None
        same = np.isclose(waiting, context, rtol=1e-6, atol=0.0)  # as single precision would be
        decimals = max(-int(Decimal(repr(each)).as_tuple().exponent) for each in context.tolist())
        if decimals >= _DECIMALS:
            same |= np.round(waiting, decimals) == context
        places = np.flatnonzero(same.all(axis=1))
        return int(places[0]) if len(places) else None

    def take(self, arm: int, place: int) -> Asked:
        """Forget a waiting pick; return how it was made."""
        waiting = self.by_arm[arm]
        del waiting[place]
        asked = Asked(self.eligible[arm].pop(place), self.propensities[arm].pop(place))
        if not waiting:  # files keep no empty lists; the order of arms must not differ
            del self.by_arm[arm], self.eligible[arm], self.propensities[arm]
        return asked
