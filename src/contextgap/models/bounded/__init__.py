"""The bounded model: posteriors whose cost does not grow with the number of observations."""

from contextgap.models.bounded.dictionary import Dictionary, Statistics, sums_by_arm
from contextgap.models.bounded.model import MOST_REPLAYED, POINTS, TOLERANCE, BoundedModel

__all__ = [
    "MOST_REPLAYED",
    "POINTS",
    "TOLERANCE",
    "BoundedModel",
    "Dictionary",
    "Statistics",
    "sums_by_arm",
]
