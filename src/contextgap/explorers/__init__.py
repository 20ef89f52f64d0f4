"""Explorers: which arm to try next, where mistakes are free."""

from contextgap.explorers.base import Explorer, Moment, explore, least_pulled
from contextgap.explorers.contextual_gap import ContextualGap
from contextgap.explorers.epsilon_greedy import EpsilonGreedy
from contextgap.explorers.kernel_ts import KernelTS
from contextgap.explorers.kernel_ucb import KernelUCB
from contextgap.explorers.uniform import Uniform

__all__ = [
    "ContextualGap",
    "EpsilonGreedy",
    "Explorer",
    "KernelTS",
    "KernelUCB",
    "Moment",
    "Uniform",
    "explore",
    "least_pulled",
]
