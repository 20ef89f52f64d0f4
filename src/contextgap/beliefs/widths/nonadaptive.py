"""A narrower width with a guarantee, for exploration that does not depend on rewards.

Vakili, Bouziani, Jalali, Bernacchia and Shiu, "Optimal Order Simple Regret for Gaussian Process
Bandits" (2021), Theorem 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths.base import Width
from contextgap.models import Posterior


@dataclass(frozen=True)
class NonadaptiveWidth(Width):
    """Intervals that hold at a number of contexts at once, where picks do not depend on rewards.

    With A arms, m contexts and failure probability δ the half width is::

        (norm + noise · √(2 ln(2·A·m/δ)) / √ridge) · std

    or, if ``tight``, with the root of the sum of squares instead of the sum::

        √(norm² + 2 · noise² · ln(2·A·m/δ) / ridge) · std

    There is no information gain in it, so that it does not grow with the number of rewards. Where
    that gain is above ln(2·m), it is narrower than ``TheoremWidth``. With ridge = noise² the first
    formula is (norm + √(2 ln(2·A·m/δ))) · std.

    What must be true: each arm's expected reward f, minus the prior mean, lies in the kernel's
    space with norm of at most ``norm``; the noise of different rewards is independent and
    sub-Gaussian with scale ``noise``; and neither the contexts and arms tried, nor the contexts at
    which intervals are read, nor the moment at which exploration ended, were chosen by looking at
    rewards. ``Uniform``, ``MaxVariance`` and ``PlannedSampling`` pick in that way. With an explorer
    that does not, a policy's ``probability`` is None, and so it is where the deployment rule looks
    back over all steps. A certificate at more than m contexts has none either. Trials that were
    told without being asked for, such as those of a sheet written beforehand, are taken to have
    been chosen in that way, too: no learner can know.

    Where arms share what they learn, ``norm`` bounds the norm of all arms together, as for
    ``TheoremWidth``, and A is replaced by A·(A + 1)/2: the number of arms and of their differences,
    each of which has an interval of its own.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the rewards' noise: the standard deviation of Gaussian noise; half the
        range of bounded noise.
    norm
        Bound on every arm's norm in the kernel's space.
    failure_probability
        The probability that any interval fails at the m contexts; above 0 and below 1.
    contexts
        How many contexts m intervals or certificates are read at. If they are read several times
        while exploration continues, as stopping rules do, contexts times the number of readings.
    tight
        Use the narrower bound.

    Notes
    -----
    The proof, for one arm with rewards y = f(X) + ε at contexts X. The posterior mean at x is wᵀy
    with the weights w = (K + ridge·I)⁻¹k, which do not depend on rewards. With φ the feature map,
    f(x) − wᵀf(X) = ⟨f, φ(x) − Σ wᵢφ(xᵢ)⟩ is at most norm·b with b = ‖φ(x) − Σ wᵢφ(xᵢ)‖. The rest of
    the error, wᵀε, is sub-Gaussian with scale noise·‖w‖, since w is fixed: it is above
    noise·‖w‖·c, c = √(2 ln(2·A·m/δ)), with a probability of at most δ/(A·m), and a union bound
    over arms and contexts remains. The weights minimise b² + ridge·‖w‖², and the minimum is the
    posterior variance: b² + ridge·‖w‖² = std². So the error is at most

        norm·b + (noise·c/√ridge)·(√ridge·‖w‖)  with  b² + (√ridge·‖w‖)² = std²,

    which is at most √(norm² + noise²·c²/ridge)·std by Cauchy and Schwarz. Since √(a² + b²) ≤ a + b
    this implies the first formula. Both hold for differences of arms that share, whose weights do
    not depend on rewards either.

    Examples
    --------
    >>> NonadaptiveWidth(noise=0.1, norm=2.0, failure_probability=0.05, contexts=100).probability
    0.95
    """

    noise: float
    norm: float
    failure_probability: float
    contexts: int
    tight: bool = False
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked = {
            "noise": checks.at_least("noise", self.noise, 0, "a standard deviation"),
            "norm": checks.positive(
                "norm", self.norm, "it bounds every arm's norm in the kernel space"
            ),
            "failure_probability": checks.fraction("failure_probability", self.failure_probability),
            "contexts": checks.whole("contexts", self.contexts, least=1),
        }
        if not isinstance(self.tight, bool):
            raise TypeError(f"tight must be True or False, got {self.tight!r}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def probability(self) -> float:
        return 1.0 - self.failure_probability

    def covers(self, contexts: int) -> bool:
        """Return whether these are no more contexts than were counted beforehand.

        Parameters
        ----------
        contexts
            How many.
        """
        return contexts <= self.contexts

    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return how far each arm's expected reward may be from its mean."""
        intervals = (posterior.differences or posterior.n_arms) * self.contexts
        log_share = math.log(2.0 * intervals / self.failure_probability)
        deviation = self.noise * math.sqrt(2.0 * log_share / posterior.ridge)
        reach = math.hypot(self.norm, deviation) if self.tight else self.norm + deviation
        return np.asarray(reach * posterior.std)
