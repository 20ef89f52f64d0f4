"""Policies: frozen decision rules, how good they are, and what they guarantee."""

from contextgap.policy.card import Card, Estimate
from contextgap.policy.fallback import Fallback, Status
from contextgap.policy.policy import Certificate, Policy
from contextgap.policy.ranking import Ranked

__all__ = ["Card", "Certificate", "Estimate", "Fallback", "Policy", "Ranked", "Status"]
