"""Lemma 5.2: how fast intervals shrink once an arm has been pulled often enough.

Widths are full widths, upper − lower. The paper's g bounds the *squared* width, but its inverse
takes the width; here both are about the width. The lemma needs assumption A III for the contexts at
which the arm itself was pulled. That holds in the burn-in and, after it, if no arm is left untried
in some direction of the contexts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.theory.arguments import RIDGE_HINT, counts
from contextgap.studies.theory.eigenvalues import eigenvalue_threshold
from contextgap.studies.theory.spectrum import Spectrum


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
