"""Proportional response: draws from sets of arms that may be the best, with known propensities.

Krishnamurthy, Zhan, Athey and Brunskill, "Proportional Response: Contextual Bandits for Simple and
Cumulative Regret Minimization" (2023). Their conformal arm set at risk β holds the best arm with
probability 1 − β; an arm is drawn by drawing β at random, then an arm of the set. Here sets come
from posteriors: arm a is in the set at risk β if the probability that it is better than the highest
mean is above β/emphasis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.methods.explorers.base import DrawingExplorer, Moment

_LARGEST_RISK = 0.5  # their β_max: risks above it count as this one


@dataclass(frozen=True)
class ProportionalResponse(DrawingExplorer):
    """Draw a risk, and an arm from those that may be the best at that risk.

    Parameters
    ----------
    emphasis
        1 for low regret while exploring; the number of arms, by default, for low simple regret.
    """

    emphasis: float | None = None
    reason: ClassVar[str] = "drawn from the arms that may be the best"

    def __post_init__(self) -> None:
        if self.emphasis is not None:
            emphasis = checks.at_least("emphasis", self.emphasis, 1, "1, or more")
            object.__setattr__(self, "emphasis", emphasis)

    def propensities(self, moment: Moment) -> FloatArray:
        """Return the mean, over risks from 0 to 1, of [arm in set] / (size of set)."""
        risk = self._risks(moment)
        order = np.argsort(-risk, kind="stable")
        falls = -np.diff(risk[order], append=0.0)  # over which the set has 1, 2, ... arms
        share = np.cumsum((falls / np.arange(1, len(risk) + 1))[::-1])[::-1]
        chances = np.empty_like(risk)
        chances[order] = share
        return np.asarray(chances / chances.sum())

    def _risks(self, moment: Moment) -> FloatArray:
        """Return the largest risk at which each arm is in the set."""
        from scipy.special import ndtr

        belief = moment.belief
        best = int(belief.mean.argmax())
        behind, spread = belief.mean - belief.mean[best], belief.std_from(best)
        certain = np.where(behind < 0, -np.inf, 0.0)
        better = ndtr(np.divide(behind, spread, out=certain, where=spread > 0))
        emphasis = len(better) if self.emphasis is None else self.emphasis
        risk = emphasis * better
        risk[best] = 1.0
        return np.where(risk >= _LARGEST_RISK, 1.0, risk)
