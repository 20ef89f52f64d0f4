"""Picks whose reward has not come yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from contextgap.base.arrays import FloatArray
from contextgap.models import Eligible


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

    def answered(self, context: FloatArray, arm: int) -> Asked:
        """Forget the oldest waiting pick of this arm at this context; return how it was made."""
        waiting = self.by_arm.get(arm, [])
        for i, candidate in enumerate(waiting):
            if candidate.tolist() == context.tolist():  # as short as contexts are, the fastest way
                del waiting[i]
                asked = Asked(self.eligible[arm].pop(i), self.propensities[arm].pop(i))
                if not waiting:  # files keep no empty lists; the order of arms must not differ
                    del self.by_arm[arm], self.eligible[arm], self.propensities[arm]
                return asked
        return Asked()

    def holds(self, context: FloatArray, arm: int) -> bool:
        """Return whether a pick of this arm at this context waits for its reward."""
        return any(each.tolist() == context.tolist() for each in self.by_arm.get(arm, ()))
