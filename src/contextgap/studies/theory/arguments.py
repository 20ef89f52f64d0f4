"""Checks of the arguments of the bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray

RIDGE_HINT = "0.01 to 1 suits rewards of unit spread"


def eigenvalue_failure(value: Any) -> float:
    """Return the failure probability of Lemma 5.1, which needs δ ≤ 1/8."""
    return checks.fraction("failure_probability", value, most=0.125)


def counts(name: str, values: Any) -> FloatArray:
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
