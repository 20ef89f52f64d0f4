"""Policies: frozen decision rules, with score cards and certificates."""

from contextgap.policy.answers import Argument, Beliefs, Certificate, Explanation, Ranked
from contextgap.policy.card import Card, Estimate
from contextgap.policy.fallback import Fallback, Status
from contextgap.policy.policy import Policy
from contextgap.policy.rules import Leaf, Rules, Split
from contextgap.policy.state import Provenance

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
