"""The learner: explores by ask and tell, and knows when it may stop."""

from contextgap.learner.learner import Learner
from contextgap.learner.stopping import StoppingRule

__all__ = ["Learner", "StoppingRule"]
