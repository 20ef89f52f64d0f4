"""Models: what the rewards seen so far say about every arm at a context."""
# All names are for other packages of this library, which import them from here.
# mypy: implicit-reexport
# ruff: noqa: F401

from contextgap.models.ageing import Ageing, AgeingModel
from contextgap.models.base import (
    MANY_PENDING,
    Follower,
    KeepsHistory,
    LookAhead,
    Model,
    Posterior,
    Predictor,
    Support,
)
from contextgap.models.bounded import MOST_REPLAYED, POINTS, BoundedModel
from contextgap.models.censoring import expected_rewards, first_guess, settled_model, stand_in
from contextgap.models.choice import (
    Relation,
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
from contextgap.models.exclusive import ClassModel, Exclusive, ExclusiveModel
from contextgap.models.follower import Batch
from contextgap.models.joint import Alike, Features, JointModel
from contextgap.models.observations import Eligible, Observations, check_floats
from contextgap.models.tracked import TrackedModel
