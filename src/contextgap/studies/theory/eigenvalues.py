"""Lemma 5.1: contexts soon fill every direction of their space.

S_t, the sum of φ(x)φ(x)ᵀ over the first t contexts, has the non-zero eigenvalues of their kernel
matrix. The lemma is proved for a kernel bounded by 1; other bounds are brought there by scaling,
which is also where the paper's general formula, with t·L⁴ and λ_x/L, has errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.theory.arguments import counts, eigenvalue_failure
from contextgap.studies.theory.spectrum import Spectrum

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
    """
    delta = checks.fraction("failure_probability", failure_probability)
    t = counts("steps", steps)
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
    """
    delta = eigenvalue_failure(failure_probability)
    squared_floor = spectrum.relative_floor**2
    rank = _RANK_FACTOR * spectrum.effective_dimension
    return 256 / squared_floor * math.log(128 * rank / (squared_floor * delta))
