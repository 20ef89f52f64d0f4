"""The paper's constants and bounds, as functions: sections 4 and 5 and the appendix.

Everything here follows "Simple Regret Minimization for Contextual Bandits"; where a statement was
corrected, the function says so. Theorem 5.3's proof has gaps that are open: docs/theory.md has the
list, and says what holds without it.

S_t, the sum of φ(x)φ(x)ᵀ over the first t contexts, has the non-zero eigenvalues of their kernel
matrix. Lemma 5.1 is proved for a kernel bounded by 1; other bounds are brought there by scaling,
which is also where the paper's general formula, with t·L⁴ and λ_x/L, has errors.

Theorem 4.1 is here for a fixed horizon: half width = scale · std / √ridge, scale = C1·β + C2.
``TheoremWidth`` recomputes the bound as data come; these constants hold from the first step to the
last, which is what section 5 builds on. ``RidgeWidth(scale(...))`` has these intervals.

Widths are full widths, upper − lower. The paper's g bounds the *squared* width, but its inverse
takes the width; here both are about the width. Lemma 5.2 needs assumption A III for the contexts at
which the arm itself was pulled. That holds in the burn-in and, after it, if no arm is left untried
in some direction of the contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.components import lazy
from contextgap.kernels import Kernel
from contextgap.tables.contexts import ContextSchema

__all__ = [
    "RegretBound",
    "Spectrum",
    "arm_hardness",
    "burn_in",
    "confidence",
    "contextual_gap_rate",
    "eigenvalue_bound",
    "eigenvalue_threshold",
    "hardness",
    "information_gain_bound",
    "norm_estimate",
    "pulls_for_width",
    "reward_gap",
    "scale",
    "scale_offset",
    "scale_slope",
    "spectrum",
    "uniform_rate",
    "width_envelope",
]


_RIDGE_HINT = "0.01 to 1 suits rewards of unit spread"


def _eigenvalue_failure(value: Any) -> float:
    """Return the failure probability of Lemma 5.1, which needs δ ≤ 1/8."""
    return checks.fraction("failure_probability", value, most=0.125)


def _counts(name: str, values: Any) -> FloatArray:
    """Return one count or an array of them as floats; none may be negative."""
    array = np.asarray(values)
    if array.dtype == object and all(isinstance(each, int) for each in array.ravel()):
        array = array.astype(np.float64)  # whole numbers beyond 64 bits
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be numbers, got {values!r}")
    array = array.astype(np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative, got {values!r}")
    return array


@dataclass(frozen=True)
class Spectrum:
    """What is assumed of the contexts' features φ(x) (assumption A III, section 5).

    Whatever came before, the next context's features lie in a fixed space of finite dimension, and
    the operator E[φ(x)φ(x)ᵀ] has no eigenvalue below the floor there.

    Parameters
    ----------
    eigenvalue_floor
        The paper's λ_x.
    effective_dimension
        The paper's d*.
    kernel_bound
        Largest k(x, x). The paper's bounds are for 1; others are brought there by scaling.

    See Also
    --------
    theory.spectrum : Estimates one.

    Examples
    --------
    >>> cg.theory.Spectrum(0.1, 3, kernel_bound=2.0).relative_floor
    0.05
    """

    eigenvalue_floor: float
    effective_dimension: int
    kernel_bound: float = 1.0

    def __post_init__(self) -> None:
        floor = checks.positive("eigenvalue_floor", self.eigenvalue_floor, "spectrum estimates it")
        size = checks.whole("effective_dimension", self.effective_dimension, least=1)
        bound = checks.positive("kernel_bound", self.kernel_bound, "1 for most kernels")
        # The eigenvalues sum to E[k(x, x)].
        if floor * size > bound * (1 + 1e-9):
            raise ValueError(
                f"eigenvalue_floor must be at most kernel_bound / effective_dimension = "
                f"{bound / size:g}, got {self.eigenvalue_floor!r}"
            )
        checks.settle(self, eigenvalue_floor=floor, effective_dimension=size, kernel_bound=bound)

    @property
    def relative_floor(self) -> float:
        """The floor after scaling the kernel to a bound of 1."""
        return self.eigenvalue_floor / self.kernel_bound


def spectrum(contexts: Any, kernel: Kernel, *, share: float = 0.95) -> Spectrum:
    """Estimate eigenvalue floor and effective dimension from contexts without rewards.

    The eigenvalues of E[φ(x)φ(x)ᵀ] are estimated by those of K/n. The effective dimension is the
    smallest number of them that hold ``share`` of their sum, and the floor is the last of these.
    Kernels such as the Gaussian have infinitely many; those beyond the share are treated as
    zero, so bounds from this estimate are a guide, not a guarantee.

    Parameters
    ----------
    contexts
        A sample, shape (n, d) or a DataFrame; one or two thousand rows are plenty.
    kernel
        Similarity of contexts.
    share
        How much of the contexts' variation must be learnt. More makes the floor lower.

    Examples
    --------
    >>> from contextgap import Linear
    >>> corners = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> cg.theory.spectrum(corners, Linear())
    Spectrum(eigenvalue_floor=0.5, effective_dimension=2, kernel_bound=1.0)
    """
    checks.instance("kernel", kernel, Kernel, "Gaussian(1.0)")
    share = checks.fraction("share", share)
    rows = ContextSchema().read(contexts, learning=True).rows
    if len(rows) < 2:
        raise ValueError(f"contexts must be a sample of at least 2 rows, got {len(rows)}")
    kernel.check_dimension(rows.shape[1])
    eigenvalues = np.maximum(eigvalsh(kernel(rows, rows) / len(rows))[::-1], 0.0)
    total = eigenvalues.cumsum()
    if total[-1] <= 0:
        raise ValueError("contexts must not all have a kernel value of 0 with themselves")
    size = int(np.searchsorted(total, share * total[-1])) + 1
    return Spectrum(
        eigenvalue_floor=float(eigenvalues[size - 1]),
        effective_dimension=size,
        kernel_bound=float(kernel.diagonal(rows).max()),
    )


# Minsker's operator Freedman inequality has an effective rank of at most 50 times the dimension.
_RANK_FACTOR = 50


def eigenvalue_bound(steps: Any, spectrum: Spectrum, failure_probability: float) -> FloatArray:
    """Return h(t, δ)₊, which the d*-th eigenvalue of S_t stays above for all t at once.

    Parameters
    ----------
    steps
        Numbers of contexts, t; a number or an array.
    spectrum
        What is assumed of the contexts.
    failure_probability
        The paper's δ: the probability that the bound fails at any t.

    Examples
    --------
    >>> cg.theory.eigenvalue_bound([100, 10000], spectrum, 0.05).round(1)
    array([  0. , 264.1])
    """
    delta = checks.fraction("failure_probability", failure_probability)
    t = _counts("steps", steps)
    # A(t, δ) and h(t, δ) of Lemma 5.1 with L = 1
    a = np.log((t + 1) * (t + 3) * (_RANK_FACTOR * spectrum.effective_dimension) / delta)
    h = t * spectrum.relative_floor - (np.sqrt(18 * t * a + a**2) + a) / 3
    return np.asarray(spectrum.kernel_bound * np.maximum(h, 0.0))


def eigenvalue_threshold(spectrum: Spectrum, failure_probability: float) -> float:
    """Return from how many contexts on the d*-th eigenvalue of S_t is at least t · floor / 2.

    Parameters
    ----------
    spectrum
        What is assumed of the contexts.
    failure_probability
        The paper's δ, at most 1/8.

    Examples
    --------
    >>> round(cg.theory.eigenvalue_threshold(spectrum, 0.05))
    447067
    """
    delta = _eigenvalue_failure(failure_probability)
    squared_floor = spectrum.relative_floor**2
    rank = _RANK_FACTOR * spectrum.effective_dimension
    return 256 / squared_floor * math.log(128 * rank / (squared_floor * delta))


_TOLERANCE_HINT = "the simple regret that is small enough, in units of reward"


def reward_gap(rewards: Any) -> FloatArray:
    """Return Δ_a(x), how far each arm is from the best other one, in the shape of ``rewards``.

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms, of two arms or more.

    Examples
    --------
    >>> reward_gap([[3.0, 1.0, 2.0]])
    array([[1., 2., 1.]])
    """
    table = np.asarray(rewards, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError(
            "rewards must be finite numbers of shape (contexts, arms) with two arms or more, "
            f"got shape {table.shape}"
        )
    second, highest = np.partition(table, -2, axis=1)[:, -2:].T[:, :, None]
    rival = np.where(table == highest, second, highest)
    return np.asarray(np.abs(rival - table))


def arm_hardness(rewards: Any, tolerance: float) -> FloatArray:
    """Return H_{a,ε} of every arm: the width below which the arm needs no more pulls.

    It is the smallest over the contexts of max(½(Δ_a(x) + ε), ε).

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.

    Examples
    --------
    >>> cg.theory.arm_hardness([[3.0, 1.0, 2.0]], tolerance=0.5)
    array([0.75, 1.25, 0.75])
    """
    epsilon = checks.positive("tolerance", tolerance, _TOLERANCE_HINT)
    closest = reward_gap(rewards).min(axis=0)
    return np.asarray(np.maximum((closest + epsilon) / 2, epsilon))


def hardness(rewards: Any, tolerance: float) -> float:
    """Return H_ε, the sum over arms of H_{a,ε}⁻²; at most A/ε².

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.

    Examples
    --------
    >>> round(cg.theory.hardness([[3.0, 1.0, 2.0]], tolerance=0.5), 2)
    4.2
    """
    return float((arm_hardness(rewards, tolerance) ** -2).sum())


def confidence(failure_probability: float) -> float:
    """Return the paper's β: one arm's intervals fail with probability e^(−β²).

    Parameters
    ----------
    failure_probability
        Above 0 and below 1, for one arm.

    Examples
    --------
    >>> round(cg.theory.confidence(0.05), 2)
    1.73
    """
    return math.sqrt(-math.log(checks.fraction("failure_probability", failure_probability)))


def scale_slope(noise: float) -> float:
    """Return the paper's C1 = √2 · noise: how fast the scale grows with the confidence β.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the noise.

    Examples
    --------
    >>> round(cg.theory.scale_slope(0.1), 3)
    0.141
    """
    return math.sqrt(2.0) * checks.at_least("noise", noise, 0, "a standard deviation")


def scale_offset(noise: float, norm: float, ridge: float, information_gain: Any) -> FloatArray:
    """Return the paper's C2 = noise · √(ln det(I + K/ridge)) + √ridge · norm.

    The logarithm is the sum of ln(1 + σ̂²(x)/ridge) over *all* the arm's own observations, σ̂ being
    the one before each. The paper's text starts the sum at the second and its appendix drops the
    square; both are errors.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the noise.
    norm
        Bound on the arm's norm in the kernel's space.
    ridge
        Regularisation.
    information_gain
        ½ ln det(I + K/ridge) at the horizon, or a bound on it; a number or an array.

    Examples
    --------
    >>> cg.theory.scale_offset(noise=0.1, norm=1.0, ridge=0.1, information_gain=[1.0, 5.0]).round(3)
    array([0.458, 0.632])
    """
    rho = checks.at_least("noise", noise, 0, "a standard deviation")
    lambda_ = checks.positive("ridge", ridge, _RIDGE_HINT)
    bound = checks.positive("norm", norm, "it bounds every arm's norm in the kernel space")
    gain = _counts("information_gain", information_gain)
    return np.asarray(rho * np.sqrt(2.0 * gain) + math.sqrt(lambda_) * bound)


def scale(
    confidence: float, noise: float, norm: float, ridge: float, information_gain: Any
) -> FloatArray:
    """Return the paper's α = C1·β + C2.

    Parameters
    ----------
    confidence
        The paper's β.
    noise, norm, ridge, information_gain
        As for ``scale_offset``.

    Examples
    --------
    >>> cg.theory.scale(1.73, noise=0.1, norm=1.0, ridge=0.1, information_gain=[1.0, 5.0]).round(3)
    array([0.702, 0.877])
    """
    beta = checks.at_least("confidence", confidence, 0)
    offset = scale_offset(noise, norm, ridge, information_gain)
    return np.asarray(scale_slope(noise) * beta + offset)


def information_gain_bound(pulls: Any, ridge: float, spectrum: Spectrum) -> FloatArray:
    """Return a bound on ½ ln det(I + K/ridge), which grows with the logarithm of the pulls.

    With d* eigenvalues that sum to at most pulls · kernel_bound, the determinant is largest when
    they are equal: ½ d* ln(1 + pulls · kernel_bound / (d* · ridge)). The appendix has
    (1 + T/λ)/d* in the logarithm, which is too small: at T = 0 it is negative.

    Parameters
    ----------
    pulls
        Observations of the arm; a number or an array.
    ridge
        Regularisation.
    spectrum
        Where the contexts' features lie.

    Examples
    --------
    >>> cg.theory.information_gain_bound([0, 100], 0.1, spectrum).round(2)
    array([0.  , 8.72])
    """
    lambda_, d = checks.positive("ridge", ridge, _RIDGE_HINT), spectrum.effective_dimension
    trace = _counts("pulls", pulls) * spectrum.kernel_bound
    return np.asarray(0.5 * d * np.log1p(trace / (d * lambda_)))


def norm_estimate(
    contexts: Any,
    rewards: Any,
    *,
    kernel: Kernel,
    ridge: float,
    noise: float,
    prior_mean: float = 0.0,
) -> float:
    """Return a heuristic estimate of one arm's norm, for ``norm`` of widths with a guarantee.

    With rewards y minus the prior mean and R = (K + ridge·I)⁻¹, the squared norm of the posterior
    mean is yᵀR·K·R·y. The estimate is the root of that minus what independent noise adds to it on
    average, noise²·trace(R·K·R), and 0 if the difference is negative. On average the difference is
    fᵀR·K·R·f, f the expected rewards: at most the squared norm, which it approaches from below as
    contexts fill the space. (yᵀR·y minus noise²·trace(R) is closer on average, but it has the noise
    of all rewards in it and not only of the directions that the kernel sees.) So the estimate is
    usually too low, more so with few rewards: no bound follows from it, and a width that uses it
    guarantees nothing, whatever its ``probability`` says. Take more than the largest estimate over
    arms, such as twice as much.

    .. versionadded:: 0.3

    Parameters
    ----------
    contexts
        Contexts at which the arm was tried, shape (n, d).
    rewards
        Its rewards.
    kernel
        Similarity of contexts.
    ridge
        Regularisation.
    noise
        Standard deviation of the rewards' noise.
    prior_mean
        What is subtracted from the rewards.

    Examples
    --------
    >>> from contextgap import Linear
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> round(norm_estimate(x, [2.0, 4.1, 5.9, 8.0], kernel=Linear(), ridge=0.01, noise=0.1), 2)
    2.0
    """
    ridge = checks.positive("ridge", ridge, _RIDGE_HINT)
    noise = checks.at_least("noise", noise, 0, "a standard deviation")
    y = checks.finite_vector("rewards", rewards) - checks.real("prior_mean", prior_mean)
    points = np.asarray(contexts, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError("contexts must be a table (2-D) of finite numbers")
    checks.same_length(contexts=len(points), rewards=len(y))
    values, vectors = np.linalg.eigh(kernel(points, points))
    values = np.maximum(values, 0.0)
    share = values / (values + ridge) ** 2  # eigenvalues of R·K·R
    squared = float(share @ (vectors.T @ y) ** 2 - noise**2 * share.sum())
    return math.sqrt(max(squared, 0.0))


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
    lambda_ = checks.positive("ridge", ridge, _RIDGE_HINT)
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
    n = _counts("pulls", pulls)
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
    s = _counts("width", width)
    if not (s > 0).all():
        raise ValueError(f"width must be positive, got {width!r}")
    # g⁻¹(s) = 16 α² / (s² λ_x) − 2 λ / λ_x
    floor = spectrum.eigenvalue_floor
    return np.asarray(16 * alpha**2 * spectrum.kernel_bound / (s**2 * floor) - 2 * lambda_ / floor)


def _positive(scale: float, ridge: float) -> tuple[float, float]:
    alpha = checks.positive("scale", scale, "contextgap.theory.scale computes it")
    return alpha, checks.positive("ridge", ridge, _RIDGE_HINT)


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
        checks.settle(
            self,
            n_arms=checks.whole("n_arms", self.n_arms, least=2),
            hardness=checks.positive("hardness", self.hardness, "n_arms / tolerance² at most"),
            noise=checks.positive("noise", self.noise, "a standard deviation"),
            norm=checks.positive("norm", self.norm, "it bounds every arm's norm"),
            ridge=checks.positive("ridge", self.ridge, _RIDGE_HINT),
            failure_probability=_eigenvalue_failure(self.failure_probability),
        )

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
    return np.asarray(c * np.exp(-rate * _counts("steps", steps) ** (2 / (2 + d))))


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
    t = _counts("steps", steps)
    c, rate = checks.positive("constant", constant, _HINT), checks.positive("decay", decay, _HINT)
    return np.asarray(c * t * np.exp(-rate * t))
