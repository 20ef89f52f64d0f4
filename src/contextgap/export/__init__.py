"""Exports: frozen policies as C and ONNX, and comparisons with them."""

from contextgap.export.rule import (
    ArmTable,
    DecisionRule,
    ExportError,
    Parity,
    decision_rule,
    parity,
)

__all__ = ["ArmTable", "DecisionRule", "ExportError", "Parity", "decision_rule", "parity"]
