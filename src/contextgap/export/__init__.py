"""Exports: a frozen policy where its decisions will run."""

from contextgap.export.rule import ArmTable, DecisionRule, ExportError, decision_rule

__all__ = ["ArmTable", "DecisionRule", "ExportError", "decision_rule"]
