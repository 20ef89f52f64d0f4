"""A learner's settings: given ones checked, missing ones filled in or left to be learnt."""

from __future__ import annotations

from typing import Any, NamedTuple

from contextgap.base import checks
from contextgap.kernels import Gaussian, Kernel
from contextgap.policy.state import read_prior_mean
from contextgap.widths import PosteriorWidth, Width

_RETUNE = ("doubling", "never")
_FEW = 10  # rewards, of all arms together, from which scales are first learnt


class Settings(NamedTuple):
    """The settings a learner starts with, some of which tuning replaces later.

    ``burn_in`` counts pulls per arm, ``first_tune`` rewards before the first tuning (None for
    never). ``sharing`` is the correlation between arms.
    """

    kernel: Kernel
    ridge: float
    prior_mean: float | str
    width: Width
    burn_in: int
    first_tune: int | None
    sharing: float


def read_settings(
    n_arms: int,
    kernel: Any,
    ridge: Any,
    prior_mean: Any,
    width: Any,
    burn_in: Any,
    retune: Any,
    sharing: Any,
) -> Settings:
    """Return a learner's settings; None means that a setting was not given."""
    burn_in = checks.whole("burn_in", burn_in, least=0)
    if ridge is not None:
        ridge = checks.positive("ridge", ridge, "0.01 to 1 suits rewards of unit spread")
    if prior_mean is not None:
        prior_mean = read_prior_mean(prior_mean)
    unscaled = kernel is None
    sharing = checks.at_least("sharing", sharing, 0, "a correlation such as 0.5")
    if sharing >= 1:
        raise ValueError(f"sharing must be below 1, a correlation such as 0.5, got {sharing!r}")
    if unscaled and sharing:
        raise ValueError("sharing needs a kernel: give one too, or leave both out")
    if unscaled:
        _check_left_out(ridge=ridge, prior_mean=prior_mean)
        kernel, prior_mean = Gaussian(1.0), "auto"
        burn_in = max(burn_in, 2, -(-_FEW // n_arms))
    checks.instance("kernel", kernel, Kernel, "Gaussian(1.0)")
    if width is None:
        width = PosteriorWidth(2.0 if unscaled else 1.0)
    checks.instance("width", width, Width, "PosteriorWidth(1.0)")
    if retune is None:
        retune = "doubling" if unscaled else "never"
    if retune not in _RETUNE:
        raise ValueError(f"retune must be one of {_RETUNE}, got {retune!r}")
    return Settings(
        kernel=kernel,
        ridge=0.05 if ridge is None else ridge,
        prior_mean=0.0 if prior_mean is None else prior_mean,
        width=width,
        burn_in=burn_in,
        first_tune=max(_FEW, burn_in * n_arms) if retune == "doubling" else None,
        sharing=sharing,
    )


def _check_left_out(**settings: Any) -> None:
    """Refuse settings that would be learnt anyway because no kernel is given."""
    for name, value in settings.items():
        if value is not None:
            raise ValueError(
                f"{name} is learnt where no kernel is given, got {name}={value!r}; "
                "give a kernel too, or leave it out"
            )
