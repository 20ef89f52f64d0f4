"""What a width must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.beliefs.widths import Width
from contextgap.models import Posterior
from contextgap.testing.common import (
    check_description,
    check_files,
    check_kind,
    doing,
    expect,
    points,
    taught,
)

_ROWS, _ARMS = 6, 5


def check_width(width: Width) -> None:
    """Check that a width can be used wherever the library takes one.

    Half widths must be finite and not negative, have the shape of the standard deviations, grow
    with them, and not depend on the other contexts. ``probability`` must be None or one. Policies
    with it, those that look back included, must go through files, and carry ``probability`` unless
    ``adaptive`` is False and picks depend on rewards.

    Parameters
    ----------
    width
        The width.
    """
    name = check_kind(width, Width, "PosteriorWidth()")
    check_description(width)
    promised: Any = width.probability
    expect(
        promised is None or (isinstance(promised, float) and 0 < promised < 1),
        f"{name}.probability must be a number between 0 and 1, or None where nothing is promised, "
        f"got {promised!r}",
    )
    for posterior in _posteriors():
        _check_values(name, width, posterior)
    _check_alone(name, width)
    for method in ("contextual-gap", "contextual-gap-history", "uniform"):
        with doing(f"exploring by {method} with {name}"):
            learner = taught(3, 2, 30, width=width, method=method)
            learner.ask(points(5, 2))
        learner.drop_pending()
        policy = check_files(name, learner, points(20, 2, seed=7))
        holds = learner.width.adaptive or not learner.method.adaptive
        carried = policy.certificate(points(4, 2)).probability
        expect(
            carried == (promised if holds else None),
            f"certificates of {method} must carry {name}.probability, {promised!r}, or None where "
            f"picks depend on rewards and {name}.adaptive is False; got {carried!r}",
        )


def _posteriors() -> list[Posterior]:
    """Return what widths are applied to: one context, several, an arm's states, certainty."""
    rng = np.random.default_rng(0)
    one, several = rng.uniform(0.1, 2, _ARMS), rng.uniform(0.1, 2, (_ROWS, _ARMS))
    gains = rng.uniform(0, 3, _ARMS)
    states = np.linspace(0, 3, _ROWS)[:, None]
    return [
        Posterior(rng.normal(size=std.shape), std, gain, 0.1, _ARMS)
        for std, gain in (
            (one, gains),
            (several, gains),
            (several, states),
            (several, np.zeros(_ARMS)),
            (np.zeros(_ARMS), gains),
            (one[:1], gains[:1]),
        )
    ]


def _check_values(name: str, width: Width, posterior: Posterior) -> None:
    std = posterior.std
    for array in posterior[:3]:
        array.flags.writeable = False
    with doing(f"{name}.half_width of a read-only posterior of shape {std.shape}"):
        half: Any = width.half_width(posterior)
    expect(
        isinstance(half, np.ndarray) and half.shape == std.shape,
        f"{name}.half_width must have the shape of posterior.std, {std.shape}, "
        f"got {np.shape(half)}",
    )
    expect(np.isfinite(half).all(), f"{name}.half_width must be finite, got {half}")
    expect(
        (half >= 0).all(),
        f"{name}.half_width must not be negative, got {half.min()}: it is upper − mean",
    )
    wider = width.half_width(posterior._replace(std=1.5 * std + 0.01))
    expect(
        (wider >= half).all(),
        f"{name}.half_width must not shrink when posterior.std grows: recommendations are made "
        "from bounds on the standard deviations",
    )


def _check_alone(name: str, width: Width) -> None:
    table = _posteriors()[1]
    together = width.half_width(table)
    for row in range(_ROWS):
        one = table._replace(mean=table.mean[row], std=table.std[row])
        expect(
            np.allclose(width.half_width(one), together[row], rtol=1e-12),
            f"{name}.half_width at one context depends on the others it is computed with",
        )
