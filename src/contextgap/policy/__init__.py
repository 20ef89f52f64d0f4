"""Policies: frozen decision rules, how good they are, and what they guarantee."""

from contextgap.policy.card import Card, Estimate
from contextgap.policy.policy import Certificate, Policy

__all__ = ["Card", "Certificate", "Estimate", "Policy"]
