"""A whole decision rule as a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.export.onnx import decision
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.kernels import Sides, kernel_diagonal, kernel_values
from contextgap.export.onnx.posterior import ArmGraph, arm_graph, mean_alone
from contextgap.export.rule import DecisionRule
from contextgap.recommenders import HighestMean, HighestUpper, SmallestGapInHistory


def emit(
    onnx: Any, graph: GraphBuilder, rule: DecisionRule, explain: bool
) -> dict[str, tuple[int, list[str | int]]]:
    """Put a whole rule into a graph; return its outputs, by name the type and shape.

    Parameters
    ----------
    onnx
        The package, which is imported only where it is needed.
    graph
        Where to put the nodes.
    rule
        The policy.
    explain
        Whether to put out everything believed too.
    """
    types = onnx.TensorProto
    real = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    contexts = graph.node("Transpose", "contexts", perm=[1, 0])
    sides = Sides(np.vstack([table.support for table in rule.arms]), contexts, _ones(graph))
    chosen, scores, explained = _decide(graph, rule, sides, explain)
    bad = decision.unanswerable(graph, contexts, scores, real, types.BOOL)
    bad_row = graph.node("Reshape", bad, graph.whole([-1]))
    arm = graph.node("Where", bad_row, graph.whole(-1), chosen)
    graph.name_output(arm, "arm")
    outputs: dict[str, tuple[int, list[str | int]]] = {"arm": (types.INT64, ["batch"])}
    if explain:
        certificate = explained.pop("certificate")
        for name, table in explained.items():
            known = graph.node("Where", bad, graph.real(np.nan), table)
            graph.name_output(graph.node("Transpose", known, perm=[1, 0]), name)
            outputs[name] = (real, ["batch", len(rule.arms)])
        # What cannot be computed is not certified.
        bound = graph.node("Where", bad_row, graph.real(np.inf), certificate)
        graph.name_output(bound, "certificate")
        outputs["certificate"] = (real, ["batch"])
    graph.prune(tuple(outputs))
    return outputs


def _ones(graph: GraphBuilder) -> str:
    """A row of ones, shape (1, batch)."""
    shape = graph.node("Shape", "contexts")
    count = graph.rows(shape, 0, 1)
    return graph.node("Expand", graph.real([[1.0]]), graph.stack([graph.whole([1]), count]))


def _decide(
    graph: GraphBuilder, rule: DecisionRule, sides: Sides, explain: bool
) -> tuple[str, str, dict[str, str]]:
    """Return the names of the arm, of the table it was picked from, and of what explains it."""
    values = _values_by_arm(graph, rule, sides)
    prior = graph.node("Mul", sides.ones, graph.real(rule.prior))
    if isinstance(rule.recommender, HighestMean) and not explain:
        means = [
            mean_alone(graph, table, own, prior)
            for table, own in zip(rule.arms, values, strict=True)
        ]
        scores = graph.stack(means)
        return decision.pick(graph, "ArgMax", scores), scores, {}
    diagonal = kernel_diagonal(graph, rule.kernel, sides)
    arms = [
        arm_graph(graph, table, own, diagonal, prior, first)
        for table, own, first in zip(rule.arms, values, _first_states(rule), strict=True)
    ]
    return _pick(graph, rule, arms, sides.ones, explain)


def _pick(
    graph: GraphBuilder, rule: DecisionRule, arms: list[ArmGraph], ones: str, explain: bool
) -> tuple[str, str, dict[str, str]]:
    today = [arm.today(graph) for arm in arms]
    table = {
        name: graph.stack([getattr(arm, name) for arm in today])
        for name in ("mean", "std", "lower", "upper")
    }
    gap = decision.gap_table(
        graph, [arm.lower for arm in today], [arm.upper for arm in today], ones
    )
    gap_when_chosen = gap
    if isinstance(rule.recommender, HighestMean):
        scores, operator = table["mean"], "ArgMax"
    elif isinstance(rule.recommender, HighestUpper):
        scores, operator = table["upper"], "ArgMax"
    else:
        if isinstance(rule.recommender, SmallestGapInHistory):
            states = decision.states_by_step(rule.pulls, rule.first_step, len(arms))
            gap_when_chosen = decision.gap_table_at_best_step(graph, arms, states, ones)
        scores, operator = gap_when_chosen, "ArgMin"
    chosen = decision.pick(graph, operator, scores)
    if not explain:
        return chosen, scores, {}
    place = graph.node("Reshape", chosen, graph.whole([1, -1]))
    own_gap = graph.node("GatherElements", gap_when_chosen, place, axis=0)
    bound = graph.node("Max", own_gap, graph.real(0.0))
    certificate = graph.node("Reshape", bound, graph.whole([-1]))
    return chosen, scores, {**table, "gap": gap, "certificate": certificate}


def _values_by_arm(graph: GraphBuilder, rule: DecisionRule, sides: Sides) -> list[str]:
    """Kernel values at each arm's support: computed for all at once, then told apart."""
    if not len(sides.support):
        return ["" for _ in rule.arms]
    values = kernel_values(graph, rule.kernel, sides)
    ends = np.cumsum([len(table.support) for table in rule.arms]).tolist()
    if sum(len(table.support) > 0 for table in rule.arms) == 1:
        return [values for _ in rule.arms]
    return [
        graph.rows(values, end - len(table.support), end)
        for end, table in zip(ends, rule.arms, strict=True)
    ]


def _first_states(rule: DecisionRule) -> list[int]:
    """Observations that each arm had at the first step that matters."""
    if not isinstance(rule.recommender, SmallestGapInHistory):
        return [len(table.weights) for table in rule.arms]
    before = rule.pulls[: rule.first_step]
    return [int((before == arm).sum()) for arm in range(len(rule.arms))]
