"""Widths: how far from the posterior mean the truth may lie."""

from contextgap.beliefs.widths.base import Width
from contextgap.beliefs.widths.nonadaptive import NonadaptiveWidth
from contextgap.beliefs.widths.posterior import PosteriorWidth, RidgeWidth
from contextgap.beliefs.widths.theorem import TheoremWidth

__all__ = ["NonadaptiveWidth", "PosteriorWidth", "RidgeWidth", "TheoremWidth", "Width"]
