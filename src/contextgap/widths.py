"""Widths: how far from the posterior mean the truth may lie."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from contextgap import checks
from contextgap.arrays import FloatArray
from contextgap.models import Posterior
from contextgap.parts import Part

_HINT = "1 is the paper's choice; 0.1 to 2 are usual"


class Width(Part, ABC):
    """A rule that turns a posterior into confidence intervals."""

    @property
    def probability(self) -> float | None:
        """With which probability all intervals hold at once; None where nothing is promised."""
        return None

    @abstractmethod
    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return upper − mean, in the shape of ``posterior.std``.

        Parameters
        ----------
        posterior
            Besides the standard deviations it has the ridge and each arm's information gain.
        """


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
    """Half width scale · std / √ridge, as the paper's text has it (section 4.1).

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
