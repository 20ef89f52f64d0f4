"""Assumption A III: in how many directions contexts vary, and how much at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from contextgap.base import checks
from contextgap.kernels import Kernel
from contextgap.tables.contexts import ContextSchema


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
        for name, value in (("eigenvalue_floor", floor), ("kernel_bound", bound)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "effective_dimension", size)

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
    >>> spectrum(corners, Linear())
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
