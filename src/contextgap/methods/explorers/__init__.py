"""Explorers: which arm to try next, where mistakes are free."""

from contextgap.methods.explorers.base import (
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
from contextgap.methods.explorers.contextual_gap import ContextualGap
from contextgap.methods.explorers.eb_tc import EBTC
from contextgap.methods.explorers.elimination import Elimination
from contextgap.methods.explorers.epsilon_greedy import EpsilonGreedy
from contextgap.methods.explorers.gain_or_gap import GainOrGap
from contextgap.methods.explorers.kernel_ts import KernelTS
from contextgap.methods.explorers.kernel_ucb import KernelUCB
from contextgap.methods.explorers.knowledge_gradient import KnowledgeGradient
from contextgap.methods.explorers.max_variance import MaxVariance
from contextgap.methods.explorers.planned_sampling import PlannedSampling
from contextgap.methods.explorers.proportional_response import ProportionalResponse
from contextgap.methods.explorers.references import ReferenceReader, as_numbers, check_reference
from contextgap.methods.explorers.top_two_ts import TopTwoTS
from contextgap.methods.explorers.uniform import Uniform
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
