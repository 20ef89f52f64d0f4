"""Arms that share what they learn as a graph: means, standard deviations, bounds on differences.

All arms use one factor, which the file holds once: v_a = L⁻¹(s_a∘k), where s_a says how alike arm a
is to the arm of each observation.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.eligible import EligibleArms
from contextgap.export.onnx.posterior import solved
from contextgap.export.rule import SharedTable


def shared_means(graph: GraphBuilder, table: SharedTable, values: str, prior: str) -> str:
    """Return prior + weights·k, shape (arms, batch)."""
    if not len(table.support):
        return graph.stack([prior] * len(table.alike))
    product = graph.node("MatMul", graph.real(table.weights), values)
    return graph.node("Add", product, prior)


def shared_tables(
    graph: GraphBuilder,
    table: SharedTable,
    values: str,
    diagonal: str,
    prior: str,
    eligible: EligibleArms | None,
) -> dict[str, str]:
    """Return mean, std, lower, upper and gap, each of shape (arms, batch)."""
    n, arms = len(table.support), len(table.alike)
    solutions = []
    for row in table.alike if n else ():
        own = graph.node("Mul", values, graph.real(row[table.whose][:, None]))
        solutions.append(solved(graph, table.factor, n, own))
    if n:
        innovations = graph.real(table.innovations[None])
        known = [graph.node("MatMul", innovations, v) for v in solutions]
        means = [graph.node("Add", each, prior) for each in known]
        explained = [graph.reduce("ReduceSumSquare", v, axis=0) for v in solutions]
        variances = [graph.node("Sub", diagonal, each) for each in explained]
    else:
        means, variances = [prior] * arms, [diagonal] * arms
    mean = graph.stack(means)
    std = _root(graph, graph.stack(variances))
    half = graph.node("Mul", std, graph.real(table.reach))
    lower, upper = (graph.node(operator, mean, half) for operator in ("Sub", "Add"))
    gap = _gaps(graph, table, solutions, means, diagonal, eligible)
    return {"mean": mean, "std": std, "lower": lower, "upper": upper, "gap": gap}


def _gaps(
    graph: GraphBuilder,
    table: SharedTable,
    solutions: list[str],
    means: list[str],
    diagonal: str,
    eligible: EligibleArms | None,
) -> str:
    """Return the highest upper bound of another arm's lead over each arm."""
    if len(means) == 1:  # an only arm has the gap 0
        return graph.node("Mul", diagonal, graph.real(0.0))
    leads: list[list[str]] = [[] for _ in means]
    for a, b in combinations(range(len(means)), 2):
        variance = graph.node("Mul", diagonal, graph.real(2.0 - 2.0 * table.among[a, b]))
        if solutions:
            apart = graph.node("Sub", solutions[a], solutions[b])
            known = graph.reduce("ReduceSumSquare", apart, axis=0)
            variance = graph.node("Sub", variance, known)
        half = graph.node("Mul", _root(graph, variance), graph.real(table.reach))
        for own, other in ((a, b), (b, a)):
            lead = graph.node("Sub", means[other], means[own])
            highest = graph.node("Add", lead, half)
            if eligible is not None:
                nothing = graph.real(-np.inf)
                highest = graph.node("Where", eligible.row(other), highest, nothing)
            leads[own].append(highest)
    gap = graph.stack([graph.reduce("ReduceMax", graph.stack(each), axis=0) for each in leads])
    return gap if eligible is None else eligible.gaps(gap)


def _root(graph: GraphBuilder, variance: str) -> str:
    return graph.node("Sqrt", graph.node("Max", variance, graph.real(0.0)))
