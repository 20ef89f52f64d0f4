"""Learning from tables that are large, or on many machines: one pass, one map and one sum."""

from contextgap.learner.bulk.learning import Learnt, learn_from

__all__ = ["Learnt", "learn_from"]
