"""Models: what the rewards seen so far say about every arm at a context."""

from contextgap.models.alike import Alike, Features
from contextgap.models.base import (
    Follower,
    KeepsHistory,
    LookAhead,
    Model,
    Posterior,
    Predictor,
    Support,
)
from contextgap.models.bounded import MOST_REPLAYED, POINTS, BoundedModel
from contextgap.models.choice import (
    describe_model,
    dictionary_of,
    grown_model,
    larger_model,
    new_model,
    refitted_model,
    restored_model,
    summed_model,
    weighted_model,
)
from contextgap.models.dictionary import Dictionary, Statistics, sums_by_arm
from contextgap.models.exact import ExactModel
from contextgap.models.joint import JointModel
from contextgap.models.observations import Eligible, Observations, check_floats
from contextgap.models.tracked import TrackedModel

__all__ = [
    "MOST_REPLAYED",
    "POINTS",
    "Alike",
    "BoundedModel",
    "Dictionary",
    "Eligible",
    "ExactModel",
    "Features",
    "Follower",
    "JointModel",
    "KeepsHistory",
    "LookAhead",
    "Model",
    "Observations",
    "Posterior",
    "Predictor",
    "Statistics",
    "Support",
    "TrackedModel",
    "check_floats",
    "describe_model",
    "dictionary_of",
    "grown_model",
    "larger_model",
    "new_model",
    "refitted_model",
    "restored_model",
    "summed_model",
    "sums_by_arm",
    "weighted_model",
]
