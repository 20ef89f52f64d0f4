"""Lemma 5.2 and Theorem 5.3: how fast intervals and regret shrink.

Widths are full widths, upper − lower. The paper's g bounds the *squared* width, but its inverse
takes the width; here both are about the width. The lemma needs assumption A III for the contexts at
which the arm itself was pulled. That holds in the burn-in and, after it, if no arm is left untried
in some direction of the contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.descriptors import lazy
from contextgap.studies.theory.constants import information_gain_bound, scale_offset, scale_slope
from contextgap.studies.theory.spectrum import (
    RIDGE_HINT,
    Spectrum,
    counts,
    eigenvalue_failure,
    eigenvalue_threshold,
)


def burn_in(spectrum: Spectrum, ridge: float, failure_probability: float) -> int:
    """Return how often every arm must be pulled before Lemma 5.2 applies: just above N_λ.

    Parameters
    ----------
    spectrum
        What is assumed of the contexts.
    ridge
        Regularisation.
    failure_probability
        The paper's δ, at most 1/8: the probability that an arm's envelope fails.

    Examples
    --------
    >>> cg.theory.burn_in(spectrum, ridge=0.1, failure_probability=0.05)
    447068
    """
    lambda_ = checks.positive("ridge", ridge, RIDGE_HINT)
    n_lambda = max(
        2 * (spectrum.kernel_bound - lambda_) / spectrum.eigenvalue_floor,
        spectrum.effective_dimension,
        eigenvalue_threshold(spectrum, failure_probability),
    )
    return math.floor(n_lambda) + 1


def width_envelope(pulls: Any, scale: float, ridge: float, spectrum: Spectrum) -> FloatArray:
    """Return √g: a bound on an arm's width anywhere, after ``burn_in`` pulls or more.

    Parameters
    ----------
    pulls
        Observations of the arm; a number or an array.
    scale
        The paper's α = C1·β + C2 at the horizon.
    ridge
        Regularisation.
    spectrum
        What is assumed of the contexts.

    See Also
    --------
    theory.pulls_for_width : The inverse.

    Examples
    --------
    >>> cg.theory.width_envelope([1000, 10000], scale=1.0, ridge=0.1, spectrum=spectrum).round(3)
    array([0.4  , 0.126])
    """
    alpha, lambda_ = _positive(scale, ridge)
    n = counts("pulls", pulls)
    # g(N) = 8 α² / (λ + N λ_x/2); a kernel bound L² multiplies std² and hence g.
    g = 8 * alpha**2 * spectrum.kernel_bound / (lambda_ + n * spectrum.eigenvalue_floor / 2)
    return np.asarray(np.sqrt(g))


def pulls_for_width(width: Any, scale: float, ridge: float, spectrum: Spectrum) -> FloatArray:
    """Return after how many pulls the envelope is down to ``width``: the inverse of √g.

    Parameters
    ----------
    width
        Full width wanted, positive; a number or an array.
    scale, ridge, spectrum
        As for ``width_envelope``.

    See Also
    --------
    theory.width_envelope : The inverse.

    Examples
    --------
    >>> round(float(cg.theory.pulls_for_width(0.5, scale=1.0, ridge=0.1, spectrum=spectrum)))
    638
    """
    alpha, lambda_ = _positive(scale, ridge)
    s = counts("width", width)
    if not (s > 0).all():
        raise ValueError(f"width must be positive, got {width!r}")
    # g⁻¹(s) = 16 α² / (s² λ_x) − 2 λ / λ_x
    floor = spectrum.eigenvalue_floor
    return np.asarray(16 * alpha**2 * spectrum.kernel_bound / (s**2 * floor) - 2 * lambda_ / floor)


def _positive(scale: float, ridge: float) -> tuple[float, float]:
    alpha = checks.positive("scale", scale, "contextgap.theory.scale computes it")
    return alpha, checks.positive("ridge", ridge, RIDGE_HINT)


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

    Examples
    --------
    >>> bound.probability(10**6) > 0.8
    True
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

        Examples
        --------
        >>> round(bound.scale_offset(10**6), 2)
        0.99
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

        Examples
        --------
        >>> bound.confidence(10**6) > 0
        True
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

        Examples
        --------
        >>> round(bound.probability(10**6), 2)
        0.9
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

        Examples
        --------
        >>> bound.steps_for(0.8) < 10**6
        True
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


_HINT = "a constant of the bound; 1 shows the rate"


def uniform_rate(
    steps: Any, dimension: int, *, constant: float = 1.0, decay: float = 1.0
) -> FloatArray:
    """Return C·exp(−c·T^(2/(2 + d))): the fastest that Guan and Jiang's bound can fall.

    Their bound ("Nonparametric stochastic contextual bandits", 2018) is about uniform sampling and
    nearest neighbours, with d₁ ≥ 2 instead of the 2 that is added to d.

    Parameters
    ----------
    steps
        Exploration steps, T; a number or an array.
    dimension
        Numbers per context, d.
    constant, decay
        C and c.

    See Also
    --------
    theory.contextual_gap_rate : That of Theorem 5.3.

    Examples
    --------
    >>> cg.theory.uniform_rate([10, 100], dimension=2).round(4)
    array([0.0423, 0.    ])
    """
    d = checks.whole("dimension", dimension, least=1)
    c, rate = checks.positive("constant", constant, _HINT), checks.positive("decay", decay, _HINT)
    return np.asarray(c * np.exp(-rate * counts("steps", steps) ** (2 / (2 + d))))


def contextual_gap_rate(steps: Any, *, constant: float = 1.0, decay: float = 1.0) -> FloatArray:
    """Return C'·T·exp(−c'·T), the rate at which the bound of Theorem 5.3 falls, up to logarithms.

    It needs a kernel of finite rank, by assumption A III; Guan and Jiang's does not, so the two are
    not about the same problems. With finite rank, uniform exploration has this rate, too.

    Parameters
    ----------
    steps
        Exploration steps, T; a number or an array.
    constant, decay
        C' and c'.

    See Also
    --------
    theory.uniform_rate : That of uniform sampling.

    Examples
    --------
    >>> cg.theory.contextual_gap_rate([10, 20]).round(6)
    array([0.000454, 0.      ])
    """
    t = counts("steps", steps)
    c, rate = checks.positive("constant", constant, _HINT), checks.positive("decay", decay, _HINT)
    return np.asarray(c * t * np.exp(-rate * t))
