"""The leading eigenvectors of an arm's kernel matrix, for bounds on its standard deviations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh

from contextgap.base.arrays import FloatArray

# Eigenvectors taken in after each stage: few decide most contexts, the others need more.
STAGES = (32, 96, 256)
# Eigenvalues this small beside the ridge hardly tell anything, and rounding spoils what they tell.
_NEGLIGIBLE = 0.1
_EPSILON = float(np.finfo(np.float64).eps)


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of a kernel matrix, largest first.

    Parameters
    ----------
    values
        The eigenvalues taken in, descending.
    vectors
        Their eigenvectors, as columns.
    next_value
        Bounds all other eigenvalues.
    tolerance
        By how much, relative to the prior variance, rounding may spoil bounds that they give.
    """

    values: FloatArray
    vectors: FloatArray
    next_value: float
    tolerance: float

    def bound_after(self, taken: int) -> float:
        """Return what no eigenvalue behind the first ``taken`` is above."""
        return float(self.values[taken]) if taken < len(self.values) else self.next_value


def leading_spectrum(gram: FloatArray, ridge: float) -> Spectrum:
    """Return the leading part of a kernel matrix's spectrum; raise ``LinAlgError`` if it fails.

    Parameters
    ----------
    gram
        The kernel matrix, shape (n, n).
    ridge
        Regularisation: eigenvalues well below it are left out.
    """
    size = len(gram)
    wanted = min(size, STAGES[-1] + 1)
    if not wanted:
        return Spectrum(np.empty(0), np.empty((0, 0)), 0.0, 0.0)
    values, vectors = eigh(gram, subset_by_index=[size - wanted, size - 1])
    if len(values) < wanted:  # LAPACK says so where many eigenvalues are the same
        raise LinAlgError(f"{len(values)} of {wanted} eigenvalues were found")
    values, vectors = values[::-1], vectors[:, ::-1]
    cut = _NEGLIGIBLE * ridge
    kept = int(np.count_nonzero(values[: STAGES[-1]] > cut))
    next_value = float(values[kept]) if kept < wanted else 0.0
    values, vectors = values[:kept].copy(), np.ascontiguousarray(vectors[:, :kept])
    # What was found are exact eigenvectors of a matrix this close to the given one.
    error = float(np.linalg.norm(gram @ vectors - vectors * values, 2)) if kept else 0.0
    error += np.sqrt(size) * _EPSILON * float(np.abs(gram).sum(axis=0).max())
    return Spectrum(values, vectors, max(next_value, 0.0) + error, 8 * error / cut)
