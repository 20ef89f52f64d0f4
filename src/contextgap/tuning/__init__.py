"""Tuning: learning scales from the rewards, and a report of how well they predict."""

from contextgap.tuning.choose import learn
from contextgap.tuning.report import Candidate, Tuning
from contextgap.tuning.search import Scales

__all__ = ["Candidate", "Scales", "Tuning", "learn"]
