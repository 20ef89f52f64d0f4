"""How alike arms are: the correlations between their expected rewards at one context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.components import lazy
from contextgap.kernels import Gaussian
from contextgap.kernels.categories import Spread, deviations
from contextgap.tables.columns import Layout

# Similarities of features do not fall below this: exports divide by them.
_LEAST = 1e-12


class Features(NamedTuple):
    """Features of arms, a row for each; the last ``categories`` of them are codes."""

    rows: FloatArray
    categories: int = 0

    def of(self, arms: Sequence[int]) -> Features:
        """Return the features of some arms."""
        return Features(self.rows[list(arms)], self.categories)

    @property
    def usual_bandwidths(self) -> FloatArray:
        """Bandwidths before any are learnt: √p standard deviations over arms."""
        count = self.rows.shape[1]
        if len(self.rows) < 2:
            return np.ones(count)
        spread = Spread.of([self.rows], Layout(tuple(range(count)), self.categories))
        return deviations(spread.columns(self.rows), spread.tied)


@dataclass(frozen=True)
class Alike:
    """Correlations of arms: B = sharing · F + (1 − sharing) · I.

    Without features F is 1 everywhere. With them F is a Gaussian kernel of the features: arms with
    the same features have the correlation ``sharing``, and distant ones have nothing in common.
    """

    sharing: float  # above 0 and below 1
    features: tuple[tuple[float, ...], ...] | None = None  # one tuple of numbers per arm
    bandwidths: tuple[float, ...] = ()  # of the features
    categories: int = 0  # how many features at the end are codes of categories

    def __post_init__(self) -> None:
        sharing = checks.positive("sharing", self.sharing, "a correlation such as 0.5")
        if sharing >= 1:
            raise ValueError(f"sharing must be below 1, got {self.sharing!r}")
        object.__setattr__(self, "sharing", sharing)
        widths = [checks.positive("bandwidths", width, "of features") for width in self.bandwidths]
        object.__setattr__(self, "bandwidths", tuple(widths))
        if self.features is None:
            return
        rows = tuple(tuple(checks.real("features", x) for x in row) for row in self.features)
        if any(len(row) != len(widths) for row in rows):
            raise ValueError(f"features must have {len(widths)} numbers per arm, one per bandwidth")
        object.__setattr__(self, "features", rows)

    @lazy
    def similar(self) -> FloatArray:
        """F, shape (arms, arms); a single 1 without features."""
        if self.features is None:
            return np.ones((1, 1))
        kernel = Gaussian(self.bandwidths, categories=self.categories)
        points = np.array(self.features).reshape(len(self.features), -1)
        return np.asarray(np.maximum(kernel(points, points), _LEAST))

    def matrix(self, n_arms: int) -> FloatArray:
        """Return B, shape (arms, arms)."""
        return np.asarray(self.sharing * self.similar + (1 - self.sharing) * np.eye(n_arms))

    def with_arm(self, features: Sequence[float] | None) -> Alike:
        """Return the correlations with one more arm."""
        if self.features is None or features is None:
            return self
        return replace(self, features=(*self.features, tuple(features)))

    def settings(self) -> dict[str, Any]:
        """Return everything as plain values."""
        if self.features is None:
            return {"sharing": self.sharing}
        codes = {"categories": self.categories} if self.categories else {}
        return {
            "sharing": self.sharing,
            "features": [list(row) for row in self.features],
            "bandwidths": list(self.bandwidths),
            **codes,
        }
