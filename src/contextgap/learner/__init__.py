"""The learner, which explores with ask and tell, and rules for when to stop."""

from contextgap.learner.cutoffs import Pick
from contextgap.learner.learner import Learner
from contextgap.learner.stopping import StoppingRule
from contextgap.learner.trials import Trial

__all__ = ["Learner", "Pick", "StoppingRule", "Trial"]
