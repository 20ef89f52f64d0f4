"""Tuning: learning hyperparameters from the rewards, and a report of how well they predict."""

from contextgap.models.tuning.choose import AmortisedSearch, learn
from contextgap.models.tuning.report import Candidate, Tuning
from contextgap.models.tuning.search import Hyperparameters

__all__ = ["AmortisedSearch", "Candidate", "Hyperparameters", "Tuning", "learn"]
