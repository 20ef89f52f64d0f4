"""Explorers: which arm to try next, where mistakes are free."""

from contextgap.methods.explorers.base import (
    DrawingExplorer,
    Explorer,
    Moment,
    Pick,
    Pool,
    ReferenceReader,
    check_reference,
    explore,
    least_pulled,
)
from contextgap.methods.explorers.baselines import (
    Elimination,
    EpsilonGreedy,
    KernelTS,
    KernelUCB,
    MaxVariance,
    Uniform,
)
from contextgap.methods.explorers.contextual_gap import ContextualGap
from contextgap.methods.explorers.eb_tc import EBTC
from contextgap.methods.explorers.knowledge_gradient import GainOrGap, KnowledgeGradient
from contextgap.methods.explorers.planned_sampling import PlannedSampling
from contextgap.methods.explorers.proportional_response import ProportionalResponse
from contextgap.methods.explorers.top_two_ts import TopTwoTS
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
    "check_reference",
    "explore",
    "least_pulled",
]
