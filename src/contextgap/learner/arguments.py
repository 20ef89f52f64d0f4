"""Checks of what users tell a learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.kernels import Kernel
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.models import Eligible
from contextgap.tables.eligible import Mask, groups, read_eligible

_NONE: FloatArray = np.empty(0)
_LARGEST = 1e100
_LARGEST_REWARD = 1e45  # a kernel's factor may be learnt, and is then about a reward squared
_ORDINARY = 1e4  # below it, kernels of a reasonable degree stay far from the largest


def read_points(points: Any, recommender: Recommender) -> int | None:
    """Return how many inducing points there may be; None for exact beliefs for ever."""
    if points is not None:
        checks.whole("points", points, least=2)
    # Inducing points keep no history, and a look-back needs every step.
    return None if isinstance(recommender, SmallestGapInHistory) else points


def read_outcomes(
    count: int, arms: Any, rewards: Any, place_of: Callable[[Any], int]
) -> tuple[IntArray, FloatArray]:
    if hasattr(arms, "to_list"):  # a pandas or polars Series
        arms = arms.to_list()
    scalar_array = isinstance(arms, np.ndarray) and arms.ndim == 0
    if scalar_array or isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray):
        raise TypeError(f"arms must be a sequence of labels, one per context, got {arms!r}")
    values = checks.finite_vector("rewards", rewards, checks.reward)
    checks.same_length(contexts=count, arms=len(arms), rewards=len(values))
    return np.array([place_of(arm) for arm in arms], dtype=np.intp), values


def read_told_eligible(
    eligible: Any,
    labels: Sequence[Label],
    active: Sequence[int],
    tried: Sequence[int] | IntArray,
    *,
    single: bool,
) -> list[Eligible] | None:
    """Return the indices of the arms eligible at each context told; None if unknown."""
    order = [*active, *(i for i in range(len(labels)) if i not in active)]
    named = [labels[i] for i in order]
    mask = read_eligible(
        eligible,
        named[: len(active)],
        len(tried),
        single=single,
        called="eligible",
        retired=named[len(active) :],
    )
    if mask is None:
        return None
    sets: list[Eligible] = [None] * len(tried)
    for rows, columns in groups(mask):
        own = tuple(sorted(order[column] for column in columns))
        for row in rows.tolist():
            if tried[row] not in own:
                where = "" if single else f" at row {row}"
                raise ValueError(
                    f"eligible must hold the arm that was tried, {labels[tried[row]]!r}{where}, "
                    f"got {[labels[i] for i in own]}"
                )
            sets[row] = own
    return sets


def check_sizes(kernel: Kernel, contexts: FloatArray, rewards: FloatArray = _NONE) -> None:
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


class Told(NamedTuple):
    arms: IntArray
    rewards: FloatArray
    noise: FloatArray  # variances besides the ridge
    censored: Mask  # of rewards that are at most what was told
    eligible: list[Eligible] | None
    costs: FloatArray  # NaN where none was told


def read_censored(censored: Any, count: int, *, single: bool) -> Mask:
    if censored is None:
        return np.zeros(count, dtype=bool)
    if isinstance(censored, bool | np.bool_):
        return np.full(count, bool(censored))
    if hasattr(censored, "to_numpy"):
        censored = censored.to_numpy()
    hint = "True or False" + ("" if single else ", or one of them per context")
    if single or isinstance(censored, str) or not isinstance(censored, Sequence | np.ndarray):
        raise TypeError(f"censored must be {hint}, got {censored!r}")
    checks.same_length(contexts=count, censored=len(censored))
    for row, each in enumerate(censored):
        if not isinstance(each, bool | np.bool_):
            raise TypeError(f"censored must be {hint}, got {each!r} at row {row}")
    return np.array(censored, dtype=bool)


def read_noise(noise: Any, censored: Mask, count: int, *, single: bool) -> FloatArray:
    if noise is None:
        return np.zeros(count)
    if single or not hasattr(noise, "__len__"):
        given = np.full(count, checks.at_least("noise", noise, 0.0, "a standard error"))
    else:
        given = checks.finite_vector("noise", noise)
        checks.same_length(contexts=count, noise=len(given))
        if given.min(initial=0.0) < 0:
            raise ValueError(f"noise must be standard errors of at least 0, got {given.min():g}")
    if given.max(initial=0.0) > _LARGEST_REWARD:
        raise ValueError(f"noise must be at most {_LARGEST_REWARD:g}, got {given.max():g}")
    if (given[censored] > 0).any():
        raise ValueError("noise must be 0, or left out, where a reward is censored")
    return given


def read_chances(propensities: Any, count: int) -> list[float | None]:
    """Return the probability with which each of some picks was made; None where it is unknown."""
    if propensities is None:
        return [None] * count
    given = propensities if isinstance(propensities, Sequence | np.ndarray) else [propensities]
    checks.same_length(contexts=count, propensities=len(given))
    for each in given:
        if each is not None and not 0 < checks.real("propensities", each, "above 0") <= 1:
            raise ValueError(f"propensities must be above 0 and at most 1, got {each!r}")
    return [None if each is None else float(each) for each in given]
