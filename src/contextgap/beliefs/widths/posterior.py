"""Widths in proportion to the posterior's standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths.base import Width
from contextgap.models import Posterior

_HINT = "1 is the paper's choice; 0.1 to 2 are usual"


@dataclass(frozen=True)
class PosteriorWidth(Width):
    """Half width scale · std, which the paper's experiments used.

    Parameters
    ----------
    scale
        The paper's α.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale, _HINT))

    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return scale · std."""
        return self.scale * posterior.std


@dataclass(frozen=True)
class RidgeWidth(Width):
    """Half width scale · std / √ridge, as in the paper's text (section 4.1).

    Parameters
    ----------
    scale
        The paper's α = C1·β + C2.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale, _HINT))

    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return scale · std / √ridge."""
        return (self.scale / math.sqrt(posterior.ridge)) * posterior.std
