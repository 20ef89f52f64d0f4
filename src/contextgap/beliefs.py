"""Widths, which turn standard deviations into half widths, and the beliefs about all arms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks, display
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label
from contextgap.base.components import LATER, Component, lazy
from contextgap.models import Posterior

_HINT = "1 is the paper's choice; 0.1 to 2 are usual"


class Width(Component, ABC):
    """A rule that turns a posterior into confidence intervals.

    ``adaptive`` says whether its guarantee, if there is one, holds where picks depend on rewards.

    See Also
    --------
    testing.check_width : Checks your own.

    Examples
    --------
    >>> from contextgap.widths import Width
    >>> isinstance(cg.PosteriorWidth(2.0), Width)
    True
    """

    adaptive: ClassVar[bool] = True

    @property
    def probability(self) -> float | None:
        """The probability with which all intervals hold at once; None if there is no guarantee."""
        return None

    def covers(self, contexts: int) -> bool:
        """Return whether the guarantee, if there is one, covers so many contexts at once.

        .. versionadded:: 0.3

        Examples
        --------
        >>> width = cg.NonadaptiveWidth(noise=0.1, norm=2.0, failure_probability=0.05, contexts=100)
        >>> width.covers(100), width.covers(101)
        (True, False)
        """
        del contexts
        return True

    def suited(self, *, adaptive: bool) -> Width:
        """Return the width to use where picks depend on rewards, or where they do not.

        .. versionadded:: 0.3

        Examples
        --------
        >>> width = cg.TheoremWidth(noise=0.1, norm=2.0, failure_probability=0.05, contexts=100)
        >>> type(width.suited(adaptive=False)).__name__
        'NonadaptiveWidth'
        """
        del adaptive
        return self

    @abstractmethod
    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return upper − mean, in the shape of ``posterior.std``.

        Parameters
        ----------
        posterior
            Besides the standard deviations it has the ridge and each arm's information gain.

        Examples
        --------
        >>> posterior = policy.state.model.posterior(contexts[0], [0, 1])
        >>> cg.PosteriorWidth(2.0).half_width(posterior).shape
        (2,)
        """


@dataclass(frozen=True)
class PosteriorWidth(Width):
    """Half width scale · std, which the paper's experiments used.

    Parameters
    ----------
    scale
        The paper's α.

    Examples
    --------
    >>> cg.Learner(2, kernel=cg.Gaussian(1.0), width=cg.PosteriorWidth(2.0)).decide([0.0]).upper
    array([2., 2.])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale, _HINT))

    def half_width(self, posterior: Posterior) -> FloatArray:
        return self.scale * posterior.std


@dataclass(frozen=True)
class RidgeWidth(Width):
    """Half width scale · std / √ridge, as in the paper's text (section 4.1).

    Parameters
    ----------
    scale
        The paper's α = C1·β + C2.

    Examples
    --------
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(1.0), width=cg.RidgeWidth(2.0))
    >>> learner.decide([0.0]).upper.round(2)
    array([8.94, 8.94])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale, _HINT))

    def half_width(self, posterior: Posterior) -> FloatArray:
        return (self.scale / math.sqrt(posterior.ridge)) * posterior.std


class _GuaranteedWidth(Width):
    """What widths with a guarantee share; they have these as fields."""

    noise: float
    norm: float
    failure_probability: float
    tight: bool

    def __post_init__(self) -> None:
        norm_hint = "it bounds every arm's norm in the kernel space"
        checked = {
            "noise": checks.at_least("noise", self.noise, 0, "a standard deviation"),
            "norm": checks.positive("norm", self.norm, norm_hint),
            "failure_probability": checks.fraction("failure_probability", self.failure_probability),
            "tight": checks.truth("tight", self.tight),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def probability(self) -> float:
        return 1.0 - self.failure_probability

    def _half_width(self, posterior: Posterior, log_terms: float | FloatArray) -> FloatArray:
        deviation = self.noise * np.sqrt(2.0 * log_terms / posterior.ridge)
        reach = np.hypot(self.norm, deviation) if self.tight else self.norm + deviation
        return np.asarray(reach * posterior.std)


@dataclass(frozen=True)
class TheoremWidth(_GuaranteedWidth):
    """Intervals that hold for all arms, contexts and steps at once, with a given probability.

    With failure probability δ shared over the A arms and K an arm's own kernel matrix, the half
    width of that arm is (Theorem 4.1)::

        (norm + noise · √(2 ln(A/δ) + ln det(I + K/ridge)) / √ridge) · std

    or, if ``tight``, with the root of the sum of squares instead of the sum, which is never wider
    and up to √2 times narrower::

        √(norm² + noise² · (2 ln(A/δ) + ln det(I + K/ridge)) / ridge) · std

    What must be true: each arm's expected reward f, minus the prior mean m, lies in the kernel's
    space with norm ‖f − m‖ of at most ``norm``; m is a number fixed beforehand, so with
    ``prior_mean="auto"`` nothing is guaranteed; noise is conditionally sub-Gaussian with scale
    ``noise``; contexts and picks depend on the past only. Arms may be picked by any rule. Adding an
    arm widens all intervals, and the guarantee covers the steps seen with the new number of arms.
    It holds for any ridge. Intervals are narrowest where the two terms are about equal, at a ridge
    of 10 to 30 times (noise/norm)², where ``tight`` helps most.

    Where arms share what they learn (``sharing`` or ``features`` given beforehand), all arms are
    one function f(x, a) in the space of the kernel k(x, x')·B[a, a'], and ``norm`` bounds its norm
    there: ‖f − m‖² is the sum over arms of B⁻¹[a, b]·⟨f_a − m, f_b − m⟩. There is one regression,
    so A is 1 and K the kernel matrix of all observations. The intervals of all arms and of their
    differences then hold, with the standard deviation of f_b − f_a in place of std. Gaps and
    certificates are made of differences.

    Inducing points (``points`` of ``Learner``) make mean and std approximations, and an upper bound
    replaces ln det(I + K/ridge), so intervals are wider. The proof is about the exact posterior, so
    ``policy.probability`` is None; learn with ``points=None`` to keep the guarantee.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the rewards' noise, the paper's ρ: the standard deviation of Gaussian
        noise; half the range of bounded noise.
    norm
        Bound on every arm's norm in the kernel's space; on that of all arms together, as above,
        where arms share.
    failure_probability
        The probability that any interval ever fails; above 0 and below 1.
    tight
        Use the narrower bound.
    contexts
        How many contexts certificates will be read at, after exploration has ended, if that is
        known. A learner whose method explores without looking at rewards then takes
        ``NonadaptiveWidth`` in place of this width: the guarantee is for these contexts at the end,
        and narrower. Other learners ignore it.

    Notes
    -----
    Why the narrower bound holds, for one arm with rewards y at contexts X. For every function g
    chosen beforehand, exp((‖y − f(X)‖² − ‖y − g(X)‖²) / (2 noise²)) is a supermartingale in the
    number of rewards, since each factor is exp(sζ − s² noise²/2) with s = (g − f)(x)/noise² and
    noise ζ. So is its average over g from a Gaussian process with covariance (noise²/ridge)·k,

        exp((‖y − f(X)‖² − ridge·yᵀ(K + ridge·I)⁻¹y) / (2 noise²) − ½ ln det(I + K/ridge)).

    By Ville's inequality it stays below A/δ for ever, with probability 1 − δ/A; that is,

        ‖y − f(X)‖² ≤ noise²·(2 ln(A/δ) + ln det(I + K/ridge)) + ridge·yᵀ(K + ridge·I)⁻¹y.

    Add ridge·‖f‖² ≤ ridge·norm². The left side is now what kernel ridge regression minimises: a
    quadratic with minimum ridge·yᵀ(K + ridge·I)⁻¹y, at the posterior mean. The minimum cancels, so

        ‖f(X) − mean(X)‖² + ridge·‖f − mean‖²
            ≤ noise²·(2 ln(A/δ) + ln det(I + K/ridge)) + ridge·norm²,

    and by Cauchy and Schwarz (f − mean)²(x) is at most std²(x)/ridge times the left side. Since
    √(a² + b²) ≤ a + b this implies Theorem 4.1.

    x may be a pair of a context and an arm, with the kernel k·B. It need be no point: in the norm
    of the left side, any bounded linear functional ℓ of the kernel's space has the squared norm
    (posterior variance of ℓ)/ridge. With ℓ(f) = f(x, b) − f(x, a) that is about differences.

    Examples
    --------
    >>> width = TheoremWidth(noise=0.1, norm=2.0, failure_probability=0.05)
    >>> width.probability
    0.95
    """

    noise: float
    norm: float
    failure_probability: float
    tight: bool = False
    contexts: int | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.contexts is not None:
            checks.whole("contexts", self.contexts, least=1)

    def suited(self, *, adaptive: bool) -> Width:
        """Return ``NonadaptiveWidth`` if picks do not depend on rewards and contexts are known."""
        if adaptive or self.contexts is None:
            return self
        return NonadaptiveWidth(
            self.noise, self.norm, self.failure_probability, self.contexts, self.tight
        )

    def half_width(self, posterior: Posterior) -> FloatArray:
        # information_gain is ½ ln det(I + K/ridge); the appendix of the paper drops the square on
        # σ̂ in the sum that this determinant is.
        log_share = math.log(posterior.n_arms / self.failure_probability)
        return self._half_width(posterior, log_share + posterior.information_gain)


@dataclass(frozen=True)
class NonadaptiveWidth(_GuaranteedWidth):
    """Intervals that hold at a number of contexts at once, where picks do not depend on rewards.

    With A arms, m contexts and failure probability δ the half width is::

        (norm + noise · √(2 ln(2·A·m/δ)) / √ridge) · std

    or, if ``tight``, with the root of the sum of squares instead of the sum::

        √(norm² + 2 · noise² · ln(2·A·m/δ) / ridge) · std

    There is no information gain in it, so that it does not grow with the number of rewards. Where
    that gain is above ln(2·m), it is narrower than ``TheoremWidth``. With ridge = noise² the first
    formula is (norm + √(2 ln(2·A·m/δ))) · std.

    What must be true: each arm's expected reward f, minus the prior mean, lies in the kernel's
    space with norm of at most ``norm``. The noise of different rewards is independent and
    sub-Gaussian with scale ``noise``. Nothing was chosen by the rewards: neither the contexts and
    arms tried, nor the contexts at which intervals are read, nor the end of exploration.
    ``Uniform``, ``MaxVariance`` and ``PlannedSampling`` pick in that way. A policy's
    ``probability`` is None with any other explorer, with a deployment rule that looks back over
    all steps, and for certificates at more than m contexts. Trials given to ``tell`` without an
    ``ask``, such as those of a sheet written beforehand, are assumed to have been chosen in that
    way, too; the learner cannot check it.

    Where arms share what they learn, ``norm`` bounds the norm of all arms together, as for
    ``TheoremWidth``, and A is replaced by A·(A + 1)/2: the number of arms and of their differences,
    each of which has an interval of its own.

    .. versionadded:: 0.3

    Parameters
    ----------
    noise, norm
        As for ``TheoremWidth``.
    failure_probability
        The probability that any interval fails at the m contexts; above 0 and below 1.
    contexts
        How many contexts m intervals or certificates are read at. If they are read several times
        while exploration continues, as stopping rules do, contexts times the number of readings.
    tight
        Use the narrower bound.

    Notes
    -----
    The page on theory has the proof: weights of the posterior mean do not depend on rewards, nor do
    those of differences of arms that share, so a union bound over arms and contexts is enough.

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
        super().__post_init__()
        object.__setattr__(self, "contexts", checks.whole("contexts", self.contexts, least=1))

    def covers(self, contexts: int) -> bool:
        return contexts <= self.contexts

    def half_width(self, posterior: Posterior) -> FloatArray:
        intervals = (posterior.differences or posterior.n_arms) * self.contexts
        return self._half_width(posterior, math.log(2.0 * intervals / self.failure_probability))


class Belief:
    """Means, intervals and gaps of all arms; arms are the last axis of every array.

    Where arms share what they learn, their differences are known better than each of them, and gaps
    are bounds on differences. ``covariance`` is that of the arms, and ``apart`` the half width of
    every difference, arms by arms; both are None where arms have nothing in common.
    """

    def __init__(self, posterior: Posterior, width: Width) -> None:
        self.mean = posterior.mean
        self.std = posterior.std
        self.half_width = width.half_width(posterior)
        self.upper = self.mean + self.half_width
        self.lower = self.mean - self.half_width
        self.covariance = posterior.covariance
        self.apart: FloatArray | None = None
        if self.covariance is not None:
            differences = posterior._replace(std=std_of_differences(self.covariance))
            self.apart = width.half_width(differences)

    def row(self, place: int) -> Self:
        one = copy(self)
        for name, values in vars(self).items():
            vars(one)[name] = None if values is None else values[place].copy()
        return one

    def told(self, sign: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean, std, lower and upper of rewards as users tell them: −1 for costs."""
        if sign > 0:
            return self.mean, self.std, self.lower, self.upper
        return -self.mean, self.std, -self.upper, -self.lower

    @lazy
    def gap(self) -> FloatArray:
        """Highest upper bound of the other arms minus the own lower bound; 0 for a single arm.

        Where arms share: the highest upper bound of another arm's lead over this one.
        """
        if self.apart is None:
            return gaps(self.lower, self.upper)
        if self.mean.shape[-1] == 1:
            return np.zeros_like(self.mean)
        return np.asarray(self._leads(self.apart).max(axis=-1))

    @lazy
    def leader(self) -> IntArray:
        """The arm with the smallest gap."""
        return np.asarray(self.gap.argmin(axis=-1))

    @lazy
    def challenger(self) -> IntArray:
        """The arm other than the leader with the highest upper bound (a single arm is both).

        Where arms share: the arm with the highest upper bound of its lead over the leader.
        """
        if self.upper.shape[-1] == 1:
            return self.leader
        if self.apart is not None:
            rivals = self._leads(self.apart).argmax(axis=-1)
            return np.asarray(np.take_along_axis(rivals, self.leader[..., None], -1)[..., 0])
        is_leader = np.arange(self.upper.shape[-1]) == self.leader[..., None]
        return np.asarray(np.where(is_leader, -np.inf, self.upper).argmax(axis=-1))

    @property
    def plausible(self) -> NDArray[np.bool_]:
        """Whether each arm may still be the best: no other is better for certain."""
        if self.apart is None:
            return np.asarray(self.upper >= self.lower.max(axis=-1, keepdims=True))
        certain = self.mean[..., None, :] - self.mean[..., None] - self.apart
        return np.asarray((certain <= 0).all(axis=-1))

    def std_from(self, arm: int) -> FloatArray:
        if self.covariance is None:
            return np.asarray(np.hypot(self.std, self.std[arm]))
        return np.asarray(std_of_differences(self.covariance)[arm])

    def draws(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return random values at one context, shape (count, arms); half widths are their stds."""
        normals = rng.standard_normal((count, len(self.mean)))
        if self.covariance is None:
            return np.asarray(self.mean + self.half_width * normals)
        share = np.divide(
            self.half_width, self.std, out=np.zeros_like(self.std), where=self.std > 0
        )
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.mean + share * (normals @ root.T))

    def _leads(self, apart: FloatArray) -> FloatArray:
        """Upper bounds of the lead of arm b (last axis) over arm a (the one before)."""
        leads = self.mean[..., None, :] - self.mean[..., None] + apart
        own = np.arange(self.mean.shape[-1])
        leads[..., own, own] = -np.inf
        return np.asarray(leads)


def std_of_differences(covariance: FloatArray) -> FloatArray:
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    apart = variance[..., None] + variance[..., None, :] - 2 * covariance
    return np.asarray(np.sqrt(np.maximum(apart, 0.0)))


def gaps(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return every arm's gap (the paper's B, section 4.2) from intervals, arms last."""
    if upper.shape[-1] == 1:
        return np.zeros_like(upper)
    rival = highest_other(upper)
    rival -= lower
    return rival


def highest_other(values: FloatArray) -> FloatArray:
    ordered = values.copy()
    ordered.partition(-2, axis=-1)
    second, highest = ordered[..., -2:-1], ordered[..., -1:]
    # Where two arms share the highest value, second equals highest and either is right.
    return np.where(values == highest, second, highest)


def leader_and_challenger(lower: FloatArray, upper: FloatArray) -> tuple[int, int]:
    # Plain Python because, for as few numbers as there are arms, it is several times as fast.
    lowers, uppers = lower.tolist(), upper.tolist()
    if len(uppers) == 1:
        return 0, 0
    highest = max(uppers)
    top = uppers.index(highest)
    second = max(uppers[:top] + uppers[top + 1 :])
    gap = [(second if u == highest else highest) - w for w, u in zip(lowers, uppers, strict=True)]
    leader = gap.index(min(gap))
    uppers[leader] = -math.inf
    return leader, uppers.index(max(uppers))


@dataclass(frozen=True)
class Decision:
    """One pick, with means, intervals and gaps of all arms at that time.

    Parameters
    ----------
    arm
        The arm picked.
    reason
        Why it was picked, in words.
    leader
        The arm with the smallest gap.
    challenger
        The arm with the highest upper bound, the leader excluded.
    arms
        All arms, in the order of the arrays.
    mean, std, lower, upper, gap
        What is believed about each arm's reward, or cost where rewards are costs, from observed
        rewards only. If the intervals hold, the regret of picking an arm is at most its gap.
    pending
        The number of picks whose reward has not arrived yet.
    pending_std
        The standard deviations if pending picks count as observed. The arm was picked by these.
        None if no pick is pending.
    propensity
        The probability with which the arm was picked, where the explorer draws and knows it.

    See Also
    --------
    Learner.decide : The arm to try.
    Policy.decide : The arm to deploy.

    Examples
    --------
    >>> decision = policy.decide([0.5, 0.0])
    >>> decision.arm, decision.reason
    ('right', 'deployed by HighestMean')
    >>> decision.mean.round(1)
    array([-0.5,  0.5])
    """

    arm: Label
    reason: str
    leader: Label
    challenger: Label
    arms: tuple[Label, ...]
    mean: FloatArray = field(repr=False)
    std: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    gap: FloatArray = field(repr=False)
    pending: int = 0
    pending_std: FloatArray | None = field(default=None, repr=False)
    propensity: float | None = None

    @classmethod
    def of(
        cls,
        belief: Belief,
        arms: tuple[Label, ...],
        pick: int,
        reason: str,
        sign: float = 1.0,
        propensity: float | None = None,
    ) -> Decision:
        """Return the decision for arm number ``pick`` at one context; the sign is −1 for costs."""
        arrays = (*belief.told(sign), belief.gap)
        for array in arrays:
            array.flags.writeable = False
        leader, challenger = arms[int(belief.leader)], arms[int(belief.challenger)]
        return cls(arms[pick], reason, leader, challenger, arms, *arrays, propensity=propensity)

    def __str__(self) -> str:
        size = max(3, *(len(str(arm)) for arm in self.arms))
        lines = [f"{self.arm}: {self.reason}"]
        lines.append(
            f"  {'arm':{size}} {'mean':>10} {'std':>10} {'lower':>10} {'upper':>10} {'gap':>10}"
        )
        for i, arm in enumerate(self.arms):
            numbers = (self.mean[i], self.std[i], self.lower[i], self.upper[i], self.gap[i])
            row = " ".join(f"{number:10.4g}" for number in numbers)
            roles = [name for name in ("leader", "challenger") if getattr(self, name) == arm]
            mark = ">" if arm == self.arm else " "
            lines.append(f"{mark} {arm!s:{size}} {row}  {' '.join(roles)}".rstrip())
        if self.pending_std is not None:
            stds = ", ".join(
                f"{arm} {std:.4g}" for arm, std in zip(self.arms, self.pending_std, strict=True)
            )
            lines.append(f"  picked with {self.pending} pending counted as observed: std {stds}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = (self.mean, self.std, self.lower, self.upper, self.gap)
        rows = [
            [
                arm,
                *(float(column[place]) for column in columns),
                ", ".join(n for n in ("leader", "challenger") if getattr(self, n) == arm),
            ]
            for place, arm in enumerate(self.arms)
        ]
        header = ["arm", "mean", "std", "lower", "upper", "gap", ""]
        picked = [self.arms.index(self.arm)]
        return display.table(f"{self.arm}: {self.reason}", header, rows, picked)
