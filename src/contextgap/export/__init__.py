"""Exports: frozen policies as C and ONNX, and comparisons with them."""

from contextgap.export.parity import Parity, parity
from contextgap.export.rule import ArmTable, DecisionRule, ExportError, decision_rule

__all__ = ["ArmTable", "DecisionRule", "ExportError", "Parity", "decision_rule", "parity"]
