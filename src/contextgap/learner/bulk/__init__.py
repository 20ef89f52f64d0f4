"""Learning from large tables, on one machine or many."""

from contextgap.learner.bulk.learning import Learnt, learn_from

__all__ = ["Learnt", "learn_from"]
