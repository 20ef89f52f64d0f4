"""Checks of what users give to a learner: settings, and what they tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.beliefs.widths import PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.models import Alike, Eligible, Features
from contextgap.policy.state import read_prior_mean
from contextgap.tables.eligible import groups, read_eligible

_NONE: FloatArray = np.empty(0)
_LARGEST = 1e100
_LARGEST_REWARD = 1e45  # a kernel's factor may be learnt, and is then about a reward squared
_ORDINARY = 1e4  # below it, kernels of a reasonable degree stay far from the largest

# How many times as many rewards as last time there are when hyperparameters are learnt anew. Each
# time costs up to the cube of their number, and all together some 1.6 times the last one.
_GROWTH = {"growing": 1.4, "doubling": 2.0}
_RETUNE = (*_GROWTH, "never")
_ALIKE = 0.9  # how alike arms with the same features are, if nothing is said
_FEW = 10  # rewards, of all arms together, from which hyperparameters are first learnt


class Settings(NamedTuple):
    """The settings a learner starts with, some of which tuning replaces later.

    ``burn_in`` counts pulls per arm, ``first_tune`` rewards before the first tuning (None for
    never), and ``growth`` says by which factor rewards grow between two. ``alike`` says how alike
    arms are, if that is given, and ``alone`` that tuning is to take for granted that they have
    nothing in common.
    """

    kernel: Kernel
    ridge: float
    prior_mean: float | str
    width: Width
    burn_in: int
    first_tune: int | None
    growth: float
    alike: Alike | None
    alone: bool


def read_settings(
    n_arms: int,
    kernel: Any,
    ridge: Any,
    prior_mean: Any,
    width: Any,
    burn_in: Any,
    retune: Any,
    sharing: Any,
    features: Features | None,
) -> Settings:
    """Return a learner's settings; None means that a setting was not given."""
    burn_in = checks.whole("burn_in", burn_in, least=0)
    if ridge is not None:
        ridge = checks.positive("ridge", ridge, "0.01 to 1 suits rewards of unit spread")
    if prior_mean is not None:
        prior_mean = read_prior_mean(prior_mean)
    unscaled = kernel is None
    alone = sharing == 0 or (sharing is None and features is None and not unscaled)
    if features is not None and alone:
        raise ValueError("sharing must be above 0 where arms have features, got 0")
    if unscaled and sharing:
        raise ValueError(
            f"sharing is learnt where no kernel is given, got sharing={sharing!r}; "
            "give a kernel too, leave it out, or give 0 for arms that have nothing in common"
        )
    if unscaled:
        _check_left_out(ridge=ridge, prior_mean=prior_mean)
        kernel, prior_mean = Gaussian(1.0), "auto"
        # Arms with features teach each other, so that one pull of each is enough to begin with.
        burn_in = max(burn_in, 2 if features is None else 1, -(-_FEW // n_arms))
    checks.instance("kernel", kernel, Kernel, "Gaussian(1.0)")
    alike = None if alone or unscaled else _alike(sharing, features)
    if width is None:
        width = PosteriorWidth(2.0 if unscaled else 1.0)
    checks.instance("width", width, Width, "PosteriorWidth(1.0)")
    if retune is None:
        retune = "growing" if unscaled else "never"
    if retune not in _RETUNE:
        raise ValueError(f"retune must be one of {_RETUNE}, got {retune!r}")
    return Settings(
        kernel=kernel,
        ridge=0.05 if ridge is None else ridge,
        prior_mean=0.0 if prior_mean is None else prior_mean,
        width=width,
        burn_in=burn_in,
        first_tune=None if retune == "never" else max(_FEW, burn_in * n_arms),
        growth=_GROWTH.get(retune, 2.0),
        alike=alike,
        alone=alone,
    )


def read_points(points: Any, recommender: Recommender) -> int | None:
    """Return how many inducing points there may be; None for exact beliefs for ever."""
    if points is not None:
        checks.whole("points", points, least=2)
    # Inducing points keep no history, and a look-back needs every step.
    return None if isinstance(recommender, SmallestGapInHistory) else points


def _alike(sharing: float | None, features: Features | None) -> Alike:
    sharing = _ALIKE if sharing is None else sharing
    if features is None:
        return Alike(sharing)
    rows = tuple(map(tuple, features.rows.tolist()))
    return Alike(sharing, rows, tuple(features.usual_bandwidths.tolist()), features.categories)


def _check_left_out(**settings: Any) -> None:
    """Refuse settings that would be learnt anyway because no kernel is given."""
    for name, value in settings.items():
        if value is not None:
            raise ValueError(
                f"{name} is learnt where no kernel is given, got {name}={value!r}; "
                "give a kernel too, or leave it out"
            )


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


def read_told_eligible(
    eligible: Any,
    labels: Sequence[Label],
    active: Sequence[int],
    tried: Sequence[int] | IntArray,
    *,
    single: bool,
) -> list[Eligible] | None:
    """Return the indices of the arms that were eligible at each context told; None if unknown.

    ``active`` are the indices of the arms in use; others may be named too. The arm tried must be
    among the eligible ones.
    """
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
