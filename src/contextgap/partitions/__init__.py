"""Learning from tables that are large, or on many machines: one pass, one map and one sum."""

from contextgap.partitions.learning import Learnt, learn_from

__all__ = ["Learnt", "learn_from"]
