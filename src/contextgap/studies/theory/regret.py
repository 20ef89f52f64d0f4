"""Theorem 5.3: the probability that the deployed arm's simple regret is below the tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from contextgap.base import checks
from contextgap.base.lazy import lazy
from contextgap.studies.theory.arguments import RIDGE_HINT, eigenvalue_failure
from contextgap.studies.theory.constants import information_gain_bound, scale_offset, scale_slope
from contextgap.studies.theory.envelope import burn_in
from contextgap.studies.theory.spectrum import Spectrum


@dataclass(frozen=True, kw_only=True)
class RegretBound:
    """The setting of Theorem 5.3, and what its formula says after a number of steps.

    It is no guarantee: the theorem's proof takes hypothetical pulls at one context for actual ones,
    and that is open. Besides, assumption A III must hold for the contexts at which each arm was
    pulled, which no rule that picks by context ensures, and the kernel must have finite rank.

    Parameters
    ----------
    n_arms
        Number of arms, A.
    hardness
        The paper's H_ε, from ``hardness``; A/ε² is the worst case.
    noise
        Sub-Gaussian scale of the noise.
    norm
        Bound on every arm's norm in the kernel's space.
    ridge
        Regularisation.
    spectrum
        What is assumed of the contexts.
    failure_probability
        The paper's δ, at most 1/8: the probability that an arm's envelope fails.
    each_step_fails
        Count a failure probability for every step after the burn-in, as the paper does. Theorem
        4.1 holds for all steps at once, so False is equally valid and gives a better bound.
    """

    n_arms: int
    hardness: float
    noise: float
    norm: float
    ridge: float
    spectrum: Spectrum
    failure_probability: float
    each_step_fails: bool = True

    def __post_init__(self) -> None:
        checks.instance("spectrum", self.spectrum, Spectrum, "Spectrum(0.1, 5)")
        canonical = {
            "n_arms": checks.whole("n_arms", self.n_arms, least=2),
            "hardness": checks.positive("hardness", self.hardness, "n_arms / tolerance² at most"),
            "noise": checks.positive("noise", self.noise, "a standard deviation"),
            "norm": checks.positive("norm", self.norm, "it bounds every arm's norm"),
            "ridge": checks.positive("ridge", self.ridge, RIDGE_HINT),
            "failure_probability": eigenvalue_failure(self.failure_probability),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)

    @lazy
    def burn_in(self) -> int:
        """Pulls of every arm at the start."""
        return burn_in(self.spectrum, self.ridge, self.failure_probability)

    def scale_offset(self, steps: int) -> float:
        """Return C2 at the horizon, by the bound on its growth.

        Parameters
        ----------
        steps
            Exploration steps, T.
        """
        gain = information_gain_bound(steps, self.ridge, self.spectrum)
        return float(scale_offset(self.noise, self.norm, self.ridge, gain))

    def confidence(self, steps: int) -> float:
        """Return β of equation (beta); not positive where the theorem says nothing.

        It makes the pulls that all arms together need for their widths, the sum of
        ``pulls_for_width(H_{a,ε})``, equal to T − N_λ(A − 1).

        Parameters
        ----------
        steps
            Exploration steps, T.
        """
        t, a, n_lambda = steps, self.n_arms, self.burn_in
        lambda_x, l_squared = self.spectrum.eigenvalue_floor, self.spectrum.kernel_bound
        c1, c2 = scale_slope(self.noise), self.scale_offset(steps)
        budget = lambda_x * (t - n_lambda * (a - 1)) + 2 * a * self.ridge
        if budget <= 0:
            return -c2 / c1
        return math.sqrt(budget / (16 * l_squared * c1**2 * self.hardness)) - c2 / c1

    def probability(self, steps: int) -> float:
        """Return the theorem's bound 1 − A(T − A·N_λ)e^(−β²) − A·δ, or 0 if that says nothing.

        Parameters
        ----------
        steps
            Exploration steps, T.
        """
        steps = checks.whole("steps", steps, least=0)
        after = steps - self.n_arms * self.burn_in
        beta = self.confidence(steps)
        # e^(−β²) falls again for negative β, where intervals would be narrower than Theorem 4.1's.
        if after <= 0 or beta <= 0:
            return 0.0
        intervals = self.n_arms * (after if self.each_step_fails else 1)
        bound = 1 - intervals * math.exp(-(beta**2)) - self.n_arms * self.failure_probability
        return max(0.0, bound)

    def steps_for(self, probability: float) -> int:
        """Return after how many exploration steps the formula gives the probability.

        Parameters
        ----------
        probability
            Below 1 − A·δ, which no number of steps exceeds.
        """
        wanted = checks.fraction("probability", probability)
        most = 1 - self.n_arms * self.failure_probability
        if wanted >= most:
            raise ValueError(
                f"probability must be below 1 − n_arms · failure_probability = {most:g}, "
                f"got {probability!r}; lower the failure_probability"
            )
        low = self.n_arms * self.burn_in
        high = low + 1
        while self.probability(high) < wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.probability(middle) >= wanted else (middle, high)
        return high
