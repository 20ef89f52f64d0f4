"""The first-order recursion behind every lag."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from contextgap.base.arrays import FloatArray


def fading_sum(inputs: FloatArray, kept: float) -> FloatArray:
    """Return y with y[t] = kept · y[t−1] + inputs[t], in the shape of ``inputs``."""
    # scipy.signal.lfilter does the same, but takes half a second to import.
    return np.array(list(accumulate(inputs, lambda before, new: kept * before + new)))
