"""How far the exported formulas may be from Python's, measured before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtpsv, stpsv

from contextgap.base.arrays import FloatArray
from contextgap.export.c.literals import Real
from contextgap.export.c.shape import Form, Shape
from contextgap.export.reference import Reference
from contextgap.export.rule import ArmTable, DecisionRule, ExportError

_MOST = 200  # contexts to emulate at
_MARGIN = 16  # rounding in C need not go as in numpy


@dataclass(frozen=True)
class Precision:
    """Rounding errors of an export.

    Parameters
    ----------
    mean, half_width
        Largest deviations from Python's double precision, over the self-test's contexts.
    tolerance
        Deviations of means and gaps up to this are rounding; so are differences of scores.
    sentence
        The same in words.
    """

    mean: float
    half_width: float
    tolerance: float
    sentence: str


def precision(rule: DecisionRule, shape: Shape, expected: Reference, real: Real) -> Precision:
    """Emulate the exported formulas in their precision and compare with Python's answers.

    Only kernel values are computed in double and then rounded.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    shape
        Which formulas are exported.
    expected
        Python's answers.
    real
        The type to compute in.
    """
    contexts = expected.contexts[:_MOST]
    mean, half = np.zeros((2, len(contexts), shape.arms))
    for i, arm in enumerate(rule.arms):
        shift, variance = _emulated(rule, arm, shape, contexts, real)
        mean[:, i] = rule.prior + shift
        half[:, i] = arm.reach[-1] * np.sqrt(np.maximum(variance, 0))
    mean_error = float(np.abs(mean - expected.mean[:_MOST]).max())
    half_error = 0.0
    if shape.form.has_widths:
        half_error = float(np.abs(half - expected.half_width[:_MOST]).max())
    if not np.isfinite(mean_error + half_error):
        raise ExportError(
            f"the range of {real.name} is too small for this policy"
            + ("; export it with float32=False" if real.float32 else "")
        )
    size = float((np.abs(expected.mean) + expected.half_width).max()) or 1.0
    least = (1e-5 if real.float32 else 1e-9) * size
    tolerance = max(least, _MARGIN * (mean_error + half_error))
    widths = f" and half widths by at most {half_error:.1e}" if shape.form.has_widths else ""
    return Precision(
        mean_error,
        half_error,
        tolerance,
        f"Computing in {real.name} moves means by at most {mean_error:.1e}{widths} at "
        f"{len(contexts)} contexts of the self-test, emulated; two arms whose scores differ by "
        f"less than {tolerance:.1e} are a near tie.",
    )


def _emulated(
    rule: DecisionRule, arm: ArmTable, shape: Shape, contexts: FloatArray, real: Real
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean − prior and std² as the exported code computes them."""
    one = real.dtype.type
    support = real.rounded(arm.support, "support").astype(np.float64)
    values = real.rounded(rule.kernel(support, contexts), "the kernel's values")
    variance = real.rounded(rule.kernel.diagonal(contexts), "the kernel's values")
    shift = real.rounded(arm.weights, "weights") @ values
    if shape.form is Form.MEANS or not len(arm.weights):
        return shift, variance
    solve = stpsv if real.float32 else dtpsv
    factor = real.rounded(arm.factor, "factor")
    # Rows of L are columns of its packed transpose; the transpose of that is L again.
    v = np.array([solve(len(k), factor, k, trans=1) for k in values.T], dtype=one).T
    if not shape.form.mean_from_weights:
        shift = real.rounded(arm.innovations, "innovations") @ v
    return shift, variance - np.einsum("ij,ij->j", v, v)
