"""What models answer: posteriors, look-aheads, bounds, supports and histories."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray


class Posterior(NamedTuple):
    """What a model knows about some arms at some contexts.

    Parameters
    ----------
    mean, std
        Shape (arms,) for one context, (contexts, arms) for several.
    information_gain
        ½ ln det(I + K/ridge) of each arm, broadcastable against ``mean``.
    ridge
        The regularisation the posterior was computed with.
    n_arms
        How many regressions there are: guarantees for all of them at once share their failure
        probability. It is the number of arms, retired ones and those not asked about included; 1
        where arms share what they learn.
    covariance
        Posterior covariances of the arms, shape (arms, arms) for one context, (contexts, arms,
        arms) for several; None where arms have nothing in common.
    differences
        Where arms share: how many arms and differences of two arms there are, A·(A + 1)/2, each of
        which has an interval; 0 where arms have nothing in common.
    """

    mean: FloatArray
    std: FloatArray
    information_gain: FloatArray
    ridge: float
    n_arms: int
    covariance: FloatArray | None = None
    differences: int = 0


class LookAhead(NamedTuple):
    """What trying an arm at the current context would teach about reference contexts.

    Parameters
    ----------
    mean
        Posterior means, shape (references + 1, arms); the last row is the current context.
    move
        If an arm were tried here, its mean at a reference would move by this times a standard
        normal: their posterior covariance over √(variance here + ridge). Shape (references + 1,
        arms); where arms share what they learn, (references + 1, arms tried, arms moved).
    """

    mean: FloatArray
    move: FloatArray


class LeftOut(NamedTuple):
    """Posteriors at observed contexts, without the rewards observed there.

    Parameters
    ----------
    posterior
        Means and standard deviations, shape (rows, arms).
    error
        Each reward minus its prediction from the others.
    """

    posterior: Posterior
    error: FloatArray


class Bounds(NamedTuple):
    """Exact means, and bounds on standard deviations that are cheap to compute.

    Parameters
    ----------
    mean, least, most
        Shape (contexts, arms).
    slack
        A bound on the rounding error of each context's means.
    """

    mean: FloatArray
    least: FloatArray
    most: FloatArray
    slack: FloatArray


class Support(NamedTuple):
    """The plain arrays that determine one arm's posterior: what exports see of a model.

    With k the kernel values between a context x and the points,

        mean = prior + weights·k        std² = k(x, x) − Σ sign·|L⁻¹k|²

    over the signed triangular factors L. One factor with sign 1 is an exact posterior; inducing
    points need a second one with sign −1.

    Parameters
    ----------
    points
        Contexts, shape (n, d).
    weights
        Of the kernel values in a mean.
    factors
        Pairs of a sign and a factor L, its rows one after the other, n(n + 1)/2 numbers.
    information_gain
        ½ ln det(I + K/ridge).
    innovations
        L⁻¹(rewards − prior) of the only factor, if its leading parts and those of L are the
        posteriors after fewer observations; None for models that do not keep their history.
    """

    points: FloatArray
    weights: FloatArray
    factors: tuple[tuple[int, FloatArray], ...]
    information_gain: float
    innovations: FloatArray | None = None


class SharedSupport(NamedTuple):
    """The plain arrays that determine the posterior of arms that share what they learn.

    With k the kernel values between a context x and the points, B the correlations of arms and
    s_a = B[a, arm of each point],

        v_a = L⁻¹(s_a∘k)        mean_a = prior + innovations·v_a
        covariance of a and b = B[a, b]·k(x, x) − v_a·v_b

    Parameters
    ----------
    points
        Contexts, shape (n, d).
    whose
        The arm observed at each point, as a column of ``alike``.
    alike
        Correlations of the arms asked about with all arms observed, shape (arms, columns).
    among
        Correlations of the arms asked about, shape (arms, arms).
    factor
        The rows of L one after the other.
    innovations
        L⁻¹(rewards − prior).
    information_gain
        ½ ln det(I + K/ridge).
    """

    points: FloatArray
    whose: IntArray
    alike: FloatArray
    among: FloatArray
    factor: FloatArray
    innovations: FloatArray
    information_gain: float


class History(NamedTuple):
    """The posteriors of all steps from one step on.

    Parameters
    ----------
    states
        By arm: its different posteriors in order, arrays of shape (states, contexts).
    steps
        Row t: which of its states each arm is in t steps later.
    covariance
        Where arms share what they learn: their covariances, shape (steps, contexts, arms, arms).
    """

    states: list[Posterior]
    steps: IntArray
    covariance: FloatArray | None = None

    def at(self, step: int) -> Posterior:
        """Return the posterior of all arms at one of the steps, contexts by arms."""
        now = zip(self.states, self.steps[step], strict=True)
        rows = [(each.mean[i], each.std[i], each.information_gain[i]) for each, i in now]
        mean, std, gain = (np.stack(values, axis=-1) for values in zip(*rows, strict=True))
        covariance = None if self.covariance is None else self.covariance[step]
        first = self.states[0]
        return first._replace(mean=mean, std=std, information_gain=gain[0], covariance=covariance)
