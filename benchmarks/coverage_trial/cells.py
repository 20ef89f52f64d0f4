"""Random problems that meet Theorem 4.1's assumptions exactly, and the widths to try on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component
from contextgap.beliefs import TheoremWidth, Width
from contextgap.kernels import Gaussian, Kernel, Matern, Periodic

NOISES = ("gaussian", "uniform")
ORDERS = ("iid", "drifting")
KERNELS: tuple[Kernel, ...] = (Gaussian(0.3), Matern(0.5, smoothness=1.5), Periodic(1.0, 2.0))

_CENTRES = 12  # kernels that an arm's function is a sum of
_DIMENSION = 2
_WINDOW = 0.3  # share of the square that drifting contexts see at a time


@dataclass(frozen=True, kw_only=True)
class CoverageCell(Component):
    """One kind of run.

    Parameters
    ----------
    kernel
        The arms' functions are in its space.
    width
        The width on trial.
    noise_kind
        ``"gaussian"``, or ``"uniform"`` with the same standard deviation; either is sub-Gaussian
        with that scale.
    order
        ``"iid"`` contexts, or ``"drifting"`` through the square.
    noise
        Standard deviation of the noise.
    norm
        Norm of every arm's function.
    ridge
        Regularisation; about where certificates are lowest for this noise and norm.
    n_arms
        Number of arms.
    steps
        Exploration steps.
    evaluated
        Contexts set aside, drawn from the whole square.
    checkpoints
        Report every so many steps.
    """

    kernel: Kernel
    width: Width
    noise_kind: str = "gaussian"
    order: str = "iid"
    noise: float = 0.1
    norm: float = 1.0
    ridge: float = 0.2
    n_arms: int = 3
    steps: int = 150
    evaluated: int = 60
    checkpoints: int = 25

    def __post_init__(self) -> None:
        checks.instance("kernel", self.kernel, Kernel, "Gaussian(0.3)")
        checks.instance("width", self.width, Width, "TheoremWidth(0.1, 1.0, 0.1)")
        for name, allowed in (("noise_kind", NOISES), ("order", ORDERS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        checks.at_least("noise", self.noise, 0, "a standard deviation")
        checks.positive("norm", self.norm, "1 gives rewards of up to about 1")
        checks.positive("ridge", self.ridge, "0.01 to 1 suits rewards of unit spread")
        for name in ("n_arms", "steps", "evaluated", "checkpoints"):
            checks.whole(name, getattr(self, name), least=1)


def theorem_widths(noise: float = 0.1, norm: float = 1.0) -> tuple[TheoremWidth, ...]:
    """Return the theorem's width and the tighter one, failing with probability 0.1 and 0.01."""
    return tuple(
        TheoremWidth(noise, norm, failure, tight)
        for failure, tight in product((0.1, 0.01), (False, True))
    )


def coverage_cells(
    widths: Sequence[Width] | None = None,
    *,
    kernels: Sequence[Kernel] = KERNELS,
    noise_kinds: Sequence[str] = NOISES,
    orders: Sequence[str] = ORDERS,
    **settings: Any,
) -> list[CoverageCell]:
    """Return every combination of width, kernel, noise and order of contexts.

    Widths are by default ``theorem_widths``, told the true noise and norm; other settings of
    ``CoverageCell`` are the same for all.
    """
    if widths is None:
        widths = theorem_widths(settings.get("noise", 0.1), settings.get("norm", 1.0))
    return [
        CoverageCell(kernel=kernel, width=width, noise_kind=noise_kind, order=order, **settings)
        for kernel, noise_kind, order, width in product(kernels, noise_kinds, orders, widths)
    ]


def draw_contexts(cell: CoverageCell, rng: np.random.Generator) -> FloatArray:
    """Return contexts of the unit square: those to explore, in order, then those to evaluate."""
    points = rng.uniform(size=(cell.steps + cell.evaluated, _DIMENSION))
    if cell.order == "drifting":
        start = np.linspace(0.0, 1.0 - _WINDOW, cell.steps)[:, None]
        points[: cell.steps] = start + _WINDOW * points[: cell.steps]
    return points


def draw_functions(
    kernel: Kernel, points: FloatArray, n_arms: int, norm: float, rng: np.random.Generator
) -> FloatArray:
    """Return values of random functions of exactly the given norm, shape (points, arms).

    Each is a sum of kernels Σ cᵢ k(xᵢ, ·) at random centres of the unit cube; its norm is √(cᵀKc).
    """
    values = np.empty((len(points), n_arms))
    for arm in range(n_arms):
        centres = rng.uniform(size=(_CENTRES, points.shape[1]))
        weights = rng.standard_normal(_CENTRES)
        weights *= norm / np.sqrt(weights @ kernel(centres, centres) @ weights)
        values[:, arm] = kernel(points, centres) @ weights
    return values


def random_source(cell: CoverageCell, seed: int) -> np.random.Generator:
    """Return what fixes a run's problem."""
    # Kinds of problems must not share their draws, or pooling them would count a run twice; widths
    # share them on purpose, to be compared on the same problems.
    kind = f"{cell.kernel} {cell.noise_kind} {cell.order}"
    return np.random.default_rng([seed, crc32(kind.encode())])


def draw_noise(cell: CoverageCell, rng: np.random.Generator) -> FloatArray:
    """Return the noise of every step and arm."""
    shape = (cell.steps, cell.n_arms)
    if cell.noise_kind == "gaussian":
        return np.asarray(cell.noise * rng.standard_normal(shape))
    # E exp(sζ) = sinh(sb)/(sb) ≤ exp(s²b²/6): uniform noise on ±b is sub-Gaussian with its own
    # standard deviation b/√3, so the promise is not helped by a loose scale.
    return np.asarray(cell.noise * np.sqrt(3.0) * rng.uniform(-1.0, 1.0, size=shape))
