"""The learner, which explores with ask and tell, and rules for when to stop."""

from contextgap.learner.arguments import Pick
from contextgap.learner.learner import Learner
from contextgap.learner.trials import StoppingRule, Trial

__all__ = ["Learner", "Pick", "StoppingRule", "Trial"]
