"""Recommenders: which arm to deploy, where there is no feedback and every mistake costs."""

from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import (
    Evidence,
    HighestMean,
    HighestUpper,
    MeanOrGap,
    PosteriorSample,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)

__all__ = [
    "Choice",
    "Evidence",
    "HighestMean",
    "HighestUpper",
    "MeanOrGap",
    "PosteriorSample",
    "Recommender",
    "SmallestGap",
    "SmallestGapInHistory",
]
