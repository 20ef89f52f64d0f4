"""Exports: a frozen policy where its decisions will run."""

from contextgap.export.parity import Parity, parity
from contextgap.export.rule import ArmTable, DecisionRule, ExportError, decision_rule

__all__ = ["ArmTable", "DecisionRule", "ExportError", "Parity", "decision_rule", "parity"]
