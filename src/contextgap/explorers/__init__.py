"""Explorers: which arm to try next, where mistakes are free."""

from contextgap.explorers.base import (
    DrawingExplorer,
    Explorer,
    Moment,
    Pick,
    Pool,
    any_context,
    choose_context,
    explore,
    least_pulled,
)
from contextgap.explorers.contextual_gap import ContextualGap
from contextgap.explorers.eb_tc import EBTC
from contextgap.explorers.elimination import Elimination
from contextgap.explorers.epsilon_greedy import EpsilonGreedy
from contextgap.explorers.gain_or_gap import GainOrGap
from contextgap.explorers.kernel_ts import KernelTS
from contextgap.explorers.kernel_ucb import KernelUCB
from contextgap.explorers.knowledge_gradient import KnowledgeGradient
from contextgap.explorers.max_variance import MaxVariance
from contextgap.explorers.planned_sampling import PlannedSampling
from contextgap.explorers.proportional_response import ProportionalResponse
from contextgap.explorers.references import ReferenceReader, as_numbers, check_reference
from contextgap.explorers.top_two_ts import TopTwoTS
from contextgap.explorers.uniform import Uniform
from contextgap.models import LookAhead

__all__ = [
    "EBTC",
    "ContextualGap",
    "DrawingExplorer",
    "Elimination",
    "EpsilonGreedy",
    "Explorer",
    "GainOrGap",
    "KernelTS",
    "KernelUCB",
    "KnowledgeGradient",
    "LookAhead",
    "MaxVariance",
    "Moment",
    "Pick",
    "PlannedSampling",
    "Pool",
    "ProportionalResponse",
    "ReferenceReader",
    "TopTwoTS",
    "Uniform",
    "any_context",
    "as_numbers",
    "check_reference",
    "choose_context",
    "explore",
    "least_pulled",
]
