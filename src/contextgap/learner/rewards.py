"""Checks of the arms and rewards that users tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel

_LARGEST = 1e100
_LARGEST_REWARD = 1e45  # a kernel's factor may be learnt, and is then about a reward squared
_ORDINARY = 1e4  # below it, kernels of a reasonable degree stay far from the largest


def read_outcomes(
    count: int, arms: Any, rewards: Any, place_of: Callable[[Any], int]
) -> tuple[IntArray, FloatArray]:
    """Return the indices of the arms tried at ``count`` contexts, and their rewards."""
    if hasattr(arms, "to_list"):  # a pandas or polars Series
        arms = arms.to_list()
    scalar_array = isinstance(arms, np.ndarray) and arms.ndim == 0
    if scalar_array or isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray):
        raise TypeError(f"arms must be a sequence of labels, one per context, got {arms!r}")
    values = checks.finite_vector("rewards", rewards, checks.reward)
    checks.same_length(contexts=count, arms=len(arms), rewards=len(values))
    return np.array([place_of(arm) for arm in arms], dtype=np.intp), values


def check_sizes(kernel: Kernel, contexts: FloatArray, rewards: FloatArray) -> None:
    """Refuse numbers that would overflow, here or later in a sum of squares."""
    # A sum of squares bounds every entry, and takes one pass.
    if np.vdot(rewards, rewards) + np.vdot(contexts, contexts) <= _ORDINARY**2:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        prior_variance = kernel.diagonal(contexts)
    limits = (("rewards", rewards, _LARGEST_REWARD), ("contexts", contexts, _LARGEST))
    for name, values, most in limits:
        if not (np.abs(values) <= most).all():
            worst = values.flat[np.abs(values).argmax()]
            raise ValueError(f"{name} must be at most {most:g} in size, got {worst:g}")
    if not (prior_variance <= _LARGEST).all():
        raise ValueError(
            "contexts must be smaller, or scaled: the kernel's value k(x, x) must be at most "
            f"{_LARGEST:g}, got {prior_variance.max():g}"
        )
