"""Leave-one-out predictions of an arm's rewards, from the factor of all of them.

With C = K + ridge·I, α = C⁻¹(y − m) and c the diagonal of C⁻¹, the arm's other observations predict
reward i with an error of α_i/c_i and a variance of 1/c_i, ridge included (Rasmussen and Williams,
2006, equation 5.12).

Where a context was visited k times and always gave the same reward, to the last digit, leaving out
one visit changes nothing. All k are left out together then: rows of C that belong to one context
differ on the diagonal only, so with g = 1/ridge − c_i the error is α_i/(1/ridge − k·g), and the
variance of the function g·ridge²/(1 − g·ridge·k).
"""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.arm import Arm

_COLUMNS = 256


def left_out(
    arm: Arm, prior: float, places: IntArray, visits: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return errors and variances of predictions of some rewards from the arm's others.

    ``places`` are positions among the arm's own observations; ``visits`` says how many to leave out
    with each, itself included. Variances are those of the expected reward, without noise.
    """
    solved = arm.dual(prior)[places]
    precision = np.empty(len(places))
    for first in range(0, len(places), _COLUMNS):
        own = places[first : first + _COLUMNS]
        columns = np.zeros((len(arm), len(own)))
        columns[own, np.arange(len(own))] = 1.0
        arm.factor.solve_many(columns)
        precision[first : first + len(own)] = np.einsum("ij,ij->j", columns, columns)
    # One of a single visit is exact; others lose digits where the ridge is tiny.
    known = np.maximum(1.0 / arm.ridge - precision, 0.0)
    others_out = np.where(visits == 1, precision, 1.0 / arm.ridge - visits * known)
    others_out = np.maximum(others_out, np.finfo(np.float64).tiny)
    variance = np.maximum(1.0 / np.maximum(precision, np.finfo(np.float64).tiny) - arm.ridge, 0.0)
    many = known * arm.ridge / np.maximum(others_out, np.finfo(np.float64).tiny)
    return solved / others_out, np.where(visits == 1, variance, many)
