"""Widths: how far from the posterior mean the truth may lie."""

from contextgap.widths.base import Width
from contextgap.widths.nonadaptive import NonadaptiveWidth
from contextgap.widths.posterior import PosteriorWidth, RidgeWidth
from contextgap.widths.theorem import TheoremWidth

__all__ = ["NonadaptiveWidth", "PosteriorWidth", "RidgeWidth", "TheoremWidth", "Width"]
