"""An arm's posterior as a graph: its mean and std after some or all of its observations.

ONNX has no triangular solve, so the file holds L⁻¹, computed in float64, and multiplies by it.
Either way the relative error of v = L⁻¹k is about that of one rounding times the condition number
of L, which is the square root of that of K + ridge·I.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from contextgap.base.arrays import FloatArray
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.rule import ArmTable

# Rows of L⁻¹ multiplied at once: fewer leave out more zeros, more make for better products.
_PANEL = 128


class ArmGraph(NamedTuple):
    """Names of one arm's values, each of shape (states, batch); the last state is today's."""

    mean: str
    std: str
    lower: str
    upper: str
    states: int

    def today(self, graph: GraphBuilder) -> ArmGraph:
        """Return the last state alone."""
        if self.states == 1:
            return self
        mean, std, lower, upper = (
            graph.rows(values, self.states - 1, self.states)
            for values in (self.mean, self.std, self.lower, self.upper)
        )
        return ArmGraph(mean, std, lower, upper, states=1)


def mean_alone(graph: GraphBuilder, table: ArmTable, values: str, prior: str) -> str:
    """Return prior + weights·k, shape (1, batch)."""
    if not len(table.weights):
        return prior
    product = graph.node("MatMul", graph.real(table.weights[None]), values)
    return graph.node("Add", product, prior)


def arm_graph(
    graph: GraphBuilder, table: ArmTable, values: str, diagonal: str, prior: str, first: int
) -> ArmGraph:
    """Return an arm's states after ``first`` observations of its own, one more, ..., all.

    ``values`` names the kernel values at its support, shape (n, batch); ``diagonal`` and ``prior``
    name k(x, x) and the prior mean, shape (1, batch).
    """
    n = len(table.weights)
    mean, variance = [prior], [diagonal]
    if n:
        v = solved(graph, table.factor, n, values)
        if first:
            head = v if first == n else graph.rows(v, 0, first)
            known = graph.node("MatMul", graph.real(table.innovations[None, :first]), head)
            explained = graph.reduce("ReduceSumSquare", head, axis=0)
            mean = [graph.node("Add", known, prior)]
            variance = [graph.node("Sub", diagonal, explained)]
        if first < n:
            tail = v if first == 0 else graph.rows(v, first, n)
            mean.append(graph.node("Mul", tail, graph.real(table.innovations[first:, None])))
            variance.append(graph.node("Neg", graph.node("Mul", tail, tail)))
    if len(table.added):  # of models without a history, so that there is one state
        u = solved(graph, table.added, n, values)
        variance = [graph.node("Add", *variance, graph.reduce("ReduceSumSquare", u, axis=0))]
    means, variances = (_running_sum(graph, terms) for terms in (mean, variance))
    std = graph.node("Sqrt", graph.node("Max", variances, graph.real(0.0)))
    half = graph.node("Mul", std, graph.real(table.reach[first:, None]))
    lower, upper = (graph.node(operator, means, half) for operator in ("Sub", "Add"))
    return ArmGraph(means, std, lower, upper, n + 1 - first)


def inverse_factor(packed: FloatArray, n: int) -> FloatArray:
    """Return L⁻¹ as a square matrix, from the rows of L one after the other."""
    factor = np.zeros((n, n))
    factor[np.tril_indices(n)] = packed
    # A factor has a positive diagonal, so there always is an inverse.
    inverse, _ = dtrtri(factor, lower=1)
    return np.asarray(np.tril(inverse))


def inverse_size(n: int) -> int:
    """Return how many numbers of L⁻¹ a file holds for an arm of ``n`` observations."""
    return sum((end - start) * end for start, end in _panels(n))


def _panels(n: int) -> list[tuple[int, int]]:
    """Stretches of rows: what is right of a stretch's last diagonal entry is zero and left out."""
    return [(start, min(start + _PANEL, n)) for start in range(0, n, _PANEL)]


def solved(graph: GraphBuilder, packed: FloatArray, n: int, values: str) -> str:
    """Return L⁻¹k, shape (n, batch)."""
    inverse = inverse_factor(packed, n)
    products = []
    for start, end in _panels(len(inverse)):
        left = values if end == len(inverse) else graph.rows(values, 0, end)
        products.append(graph.node("MatMul", graph.real(inverse[start:end, :end]), left))
    return graph.stack(products)


def _running_sum(graph: GraphBuilder, terms: list[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    return graph.node("CumSum", graph.stack(terms), graph.whole(0))
