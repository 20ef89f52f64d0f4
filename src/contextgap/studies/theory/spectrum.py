"""What the bounds assume: in how many directions contexts vary, and how hard the arms are.

Assumption A III, Lemma 5.1 and the hardness of section 5. S_t, the sum of φ(x)φ(x)ᵀ over the first
t contexts, has the non-zero eigenvalues of their kernel matrix. Lemma 5.1 is proved for a kernel
bounded by 1; other bounds are brought there by scaling, which is also where the paper's general
formula, with t·L⁴ and λ_x/L, has errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.tables.contexts import ContextSchema

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

    See Also
    --------
    theory.spectrum : Estimates one.

    Examples
    --------
    >>> cg.theory.Spectrum(0.1, 3, kernel_bound=2.0).relative_floor
    0.05
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
    >>> cg.theory.spectrum(corners, Linear())
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

    Examples
    --------
    >>> cg.theory.eigenvalue_bound([100, 10000], spectrum, 0.05).round(1)
    array([  0. , 264.1])
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

    Examples
    --------
    >>> round(cg.theory.eigenvalue_threshold(spectrum, 0.05))
    447067
    """
    delta = eigenvalue_failure(failure_probability)
    squared_floor = spectrum.relative_floor**2
    rank = _RANK_FACTOR * spectrum.effective_dimension
    return 256 / squared_floor * math.log(128 * rank / (squared_floor * delta))


_TOLERANCE_HINT = "the simple regret that is small enough, in units of reward"


def reward_gap(rewards: Any) -> FloatArray:
    """Return Δ_a(x), how far each arm is from the best other one, in the shape of ``rewards``.

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms, of two arms or more.

    Examples
    --------
    >>> reward_gap([[3.0, 1.0, 2.0]])
    array([[1., 2., 1.]])
    """
    table = np.asarray(rewards, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError(
            "rewards must be finite numbers of shape (contexts, arms) with two arms or more, "
            f"got shape {table.shape}"
        )
    second, highest = np.partition(table, -2, axis=1)[:, -2:].T[:, :, None]
    rival = np.where(table == highest, second, highest)
    return np.asarray(np.abs(rival - table))


def arm_hardness(rewards: Any, tolerance: float) -> FloatArray:
    """Return H_{a,ε} of every arm: the width below which the arm needs no more pulls.

    It is the smallest over the contexts of max(½(Δ_a(x) + ε), ε).

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.

    Examples
    --------
    >>> cg.theory.arm_hardness([[3.0, 1.0, 2.0]], tolerance=0.5)
    array([0.75, 1.25, 0.75])
    """
    epsilon = checks.positive("tolerance", tolerance, _TOLERANCE_HINT)
    closest = reward_gap(rewards).min(axis=0)
    return np.asarray(np.maximum((closest + epsilon) / 2, epsilon))


def hardness(rewards: Any, tolerance: float) -> float:
    """Return H_ε, the sum over arms of H_{a,ε}⁻²; at most A/ε².

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.

    Examples
    --------
    >>> round(cg.theory.hardness([[3.0, 1.0, 2.0]], tolerance=0.5), 2)
    4.2
    """
    return float((arm_hardness(rewards, tolerance) ** -2).sum())
