"""Recommenders: which arm to deploy, where there is no feedback and every mistake costs."""

from contextgap.recommenders.rules import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)

__all__ = [
    "HighestMean",
    "HighestUpper",
    "PosteriorSample",
    "Recommender",
    "SmallestGap",
    "SmallestGapInHistory",
]
