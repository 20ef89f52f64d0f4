"""Uniform exploration: every arm gets an equal share of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.methods.explorers.base import Explorer, Moment, least_pulled


@dataclass(frozen=True)
class Uniform(Explorer):
    """Try the arms in turn, whatever the context.

    Parameters
    ----------
    random
        Try a random arm each time instead of the next in turn. Its propensity is then known; with
        ``burn_in=0`` that of every pick.
    """

    random: bool = False
    adaptive: ClassVar[bool] = False
    reason: ClassVar[str] = "its turn"

    def __post_init__(self) -> None:
        if not isinstance(self.random, bool):
            raise TypeError(f"random must be True or False, got {self.random!r}")

    def pick(self, moment: Moment) -> int:
        """Return the arm pulled least so far, or a random one."""
        if self.random:
            return int(moment.rng.integers(len(moment.pulls)))
        return least_pulled(moment)

    def propensities(self, moment: Moment) -> FloatArray | None:
        """Return the same for every arm, if arms are random."""
        return np.full(len(moment.pulls), 1 / len(moment.pulls)) if self.random else None
