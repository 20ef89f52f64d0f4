"""A learner's settings: given ones checked, missing ones filled in or left to be learnt."""

from __future__ import annotations

from typing import Any, NamedTuple

from contextgap.base import checks
from contextgap.beliefs.widths import PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.models import Alike, Features
from contextgap.policy.state import read_prior_mean

# How many times as many rewards as last time there are when scales are learnt anew. Each time costs
# up to the cube of their number, so that all times together cost some 1.6 times the last one.
_GROWTH = {"growing": 1.4, "doubling": 2.0}
_RETUNE = (*_GROWTH, "never")
_ALIKE = 0.9  # how alike arms with the same features are, if nothing is said
_FEW = 10  # rewards, of all arms together, from which scales are first learnt


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
    """Return how many support points there may be; None for exact beliefs for ever."""
    if points is not None:
        checks.whole("points", points, least=2)
    # Support points keep no history, and a look-back needs every step.
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
