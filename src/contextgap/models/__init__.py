"""Models: what the rewards seen so far say about every arm at a context."""

from contextgap.models.base import Model, Posterior
from contextgap.models.dense import DenseModel
from contextgap.models.exact import ExactModel
from contextgap.models.tracked import TrackedModel

__all__ = ["DenseModel", "ExactModel", "Model", "Posterior", "TrackedModel"]
