"""Models: what the rewards seen so far say about every arm at a context."""

from contextgap.models.alike import Alike, Features
from contextgap.models.base import (
    NOTHING_PENDING,
    Bounds,
    Follower,
    History,
    KeepsHistory,
    LeftOut,
    LookAhead,
    Model,
    Pending,
    Posterior,
    Predictor,
    SharedSupport,
    Support,
)
from contextgap.models.bounded import (
    MOST_REPLAYED,
    POINTS,
    BoundedModel,
    Dictionary,
    Statistics,
    sums_by_arm,
)
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
from contextgap.models.exact import ExactModel
from contextgap.models.joint import JointModel
from contextgap.models.observations import Eligible, Observations, check_floats
from contextgap.models.tracked import TrackedModel

__all__ = [
    "MOST_REPLAYED",
    "NOTHING_PENDING",
    "POINTS",
    "Alike",
    "BoundedModel",
    "Bounds",
    "Dictionary",
    "Eligible",
    "ExactModel",
    "Features",
    "Follower",
    "History",
    "JointModel",
    "KeepsHistory",
    "LeftOut",
    "LookAhead",
    "Model",
    "Observations",
    "Pending",
    "Posterior",
    "Predictor",
    "SharedSupport",
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
