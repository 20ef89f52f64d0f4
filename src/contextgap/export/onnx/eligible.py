"""Eligible arms as a graph: everything as if a row had no other arms."""

from __future__ import annotations

import numpy as np

from contextgap.export.onnx.builder import GraphBuilder

NAME = "eligible"  # of the graph's input, shape (batch, arms)


class EligibleArms:
    """Which arms may be chosen, for tables of shape (arms, batch).

    Parameters
    ----------
    graph
        The graph, which has an input of truth values.
    """

    def __init__(self, graph: GraphBuilder) -> None:
        self._graph = graph
        self.table = graph.node("Transpose", NAME, perm=[1, 0])
        ones = graph.cast(self.table, graph.dtype)
        count = graph.reduce("ReduceSum", ones, axis=0)
        self.none = graph.node("Less", count, graph.real(0.5))
        self._alone = graph.node("Less", count, graph.real(1.5))

    def only(self, table: str, otherwise: float) -> str:
        """Return a table with a number in place of what belongs to arms that are not eligible."""
        return self._graph.node("Where", self.table, table, self._graph.real(otherwise))

    def row(self, arm: int) -> str:
        """Say where one arm is eligible, shape (1, batch)."""
        return self._graph.rows(self.table, arm, arm + 1)

    def gaps(self, gap: str) -> str:
        """Return gaps over eligible rivals; an only arm has the gap 0, others that are not NaN."""
        known = self._graph.node("Where", self._alone, self._graph.real(0.0), gap)
        return self.only(known, np.nan)
