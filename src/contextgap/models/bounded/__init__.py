"""The bounded model: posteriors whose cost does not grow with the number of observations."""

from contextgap.models.bounded.dictionary import Dictionary
from contextgap.models.bounded.model import MOST_REPLAYED, POINTS, TOLERANCE, BoundedModel
from contextgap.models.bounded.statistics import Statistics, sums_by_arm

__all__ = [
    "MOST_REPLAYED",
    "POINTS",
    "TOLERANCE",
    "BoundedModel",
    "Dictionary",
    "Statistics",
    "sums_by_arm",
]
