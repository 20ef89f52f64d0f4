"""Proportional response: draws from sets of arms that may be the best, with known propensities.

Krishnamurthy, Zhan, Athey and Brunskill, "Proportional Response: Contextual Bandits for Simple and
Cumulative Regret Minimization" (2023). Their conformal arm set at risk β misses the best arm with
probability at most β. An arm is drawn by drawing β between 0 and 1 and then any arm of the set at
risk min(β, β_max)/η, with β_max = 1/2. The risk adjustment η makes sets larger than the drawn risk
asks for. It is the largest number, from 1 to √ω, for which the set at risk β_max/η has at most
(1 − β_max)·A/η of the A arms.

Three things are simpler here. Theirs are sets of the arms whose estimate is at most a constant/β
below the best one, which holds on average over contexts; here arm a is in the set at risk β if its
posterior probability of being better than the arm of the highest mean is at least β. Their η is one
number for all contexts, from the mean size of the sets; here it is the current context's. And they
update at the end of epochs, intersect sets with those of earlier epochs, and let the upper end √ω
grow to √(ωA/α) as a bound α on the inverse propensity of the best arm falls below A; here beliefs
are the latest ones and α stays A.
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

    .. versionadded:: 0.3

    Parameters
    ----------
    emphasis
        The paper's ω: 1 for low regret while exploring; the number of arms, by default, for low
        simple regret.

    Examples
    --------
    >>> explorer = cg.explorers.ProportionalResponse()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 0, 1])
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
        risk = self._adjustment(better, best) * better
        risk[best] = 1.0
        return np.where(risk >= _LARGEST_RISK, 1.0, risk)

    def _adjustment(self, better: FloatArray, best: int) -> float:
        """Return η; the set at risk β_max/η has more than n arms where η > β_max/enters[n - 1]."""
        n_arms = len(better)
        enters = np.append(np.sort(np.delete(better, best))[::-1], 0.0)
        room = np.arange(1, n_arms + 1) / ((1 - _LARGEST_RISK) * n_arms)
        inverse = np.maximum(room, enters / _LARGEST_RISK).min()
        most = np.sqrt(n_arms if self.emphasis is None else self.emphasis)
        # Just below the end of the interval, where one arm more would enter.
        return float(np.clip((1 - 1e-9) / inverse, 1.0, most))
