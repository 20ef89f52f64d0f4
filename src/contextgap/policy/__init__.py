"""Policies: frozen decision rules, with score cards and certificates."""

import sys

from contextgap.policy.answers import Argument, Beliefs, Certificate, Explanation, Ranked
from contextgap.policy.policy import Policy
from contextgap.policy.rules import Leaf, Rules, Split
from contextgap.policy.state import Card, Estimate, Fallback, Provenance, Status

sys.modules[f"{__name__}.card"] = sys.modules[Card.__module__]  # whose path is public

__all__ = [
    "Argument",
    "Beliefs",
    "Card",
    "Certificate",
    "Estimate",
    "Explanation",
    "Fallback",
    "Leaf",
    "Policy",
    "Provenance",
    "Ranked",
    "Rules",
    "Split",
    "Status",
]
