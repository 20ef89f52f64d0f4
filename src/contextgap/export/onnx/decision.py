"""Which arm, as a graph: gaps, the look-back, and rows that get no answer.

Tables have shape (arms, batch). Ties go to the lowest index, and to the earlier step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import IntArray
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.posterior import ArmGraph


def pick(graph: GraphBuilder, operator: str, scores: str) -> str:
    """Return the first place of the highest (ArgMax) or lowest (ArgMin) score, shape (batch,)."""
    return graph.node(operator, scores, axis=0, keepdims=0, select_last_index=0)


def gap_table(graph: GraphBuilder, lower: list[str], upper: list[str], ones: str) -> str:
    """Return every arm's gap from rows of bounds; 0 for an only arm."""
    if len(upper) == 1:
        return graph.node("Mul", ones, graph.real(0.0))
    uppers, lowers = graph.stack(upper), graph.stack(lower)
    both = graph.highest_two(uppers)
    highest, second = graph.rows(both, 0, 1), graph.rows(both, 1, 2)
    # Where two arms share the highest upper, second equals highest and either is right.
    rival = graph.node("Where", graph.node("Equal", uppers, highest), second, highest)
    return graph.node("Sub", rival, lowers)


def gap_table_at_best_step(
    graph: GraphBuilder, arms: list[ArmGraph], states: IntArray, ones: str
) -> str:
    """Return every arm's gap at the step whose smallest gap is smallest, for each context.

    Parameters
    ----------
    graph
        Where to put the nodes.
    arms
        Every arm's states.
    states
        Row t: which state each arm is in at step t.
    ones
        Name of a row of ones, shape (1, batch).
    """
    if len(arms) == 1:
        return gap_table(graph, [arms[0].lower], [arms[0].upper], ones)
    smallest = _smallest_gaps(graph, arms, states)
    step = graph.node("ArgMin", smallest, axis=0, keepdims=1, select_last_index=0)
    lower, upper = [], []
    for arm, own in zip(arms, states.T, strict=True):
        state = graph.node("Gather", graph.whole(own), step, axis=0)
        lower.append(graph.node("GatherElements", arm.lower, state, axis=0))
        upper.append(graph.node("GatherElements", arm.upper, state, axis=0))
    return gap_table(graph, lower, upper, ones)


def _smallest_gaps(graph: GraphBuilder, arms: list[ArmGraph], states: IntArray) -> str:
    """Return the smallest gap at every step, shape (steps, batch).

    With h the arm of highest upper U1, and U2 the second highest, it is
    min(U1 − max lower, U2 − lower_h); see ``contextgap.recommenders.history``.
    """
    lower, upper = _by_step(graph, arms[0], states[:, 0])
    highest, second, lowest, lower_of_highest = upper, "", lower, lower
    for arm, own in zip(arms[1:], states.T[1:], strict=True):
        lower, upper = _by_step(graph, arm, own)
        beaten = graph.node("Min", highest, upper)
        second = graph.node("Max", second, beaten) if second else beaten
        is_higher = graph.node("Greater", upper, highest)
        lower_of_highest = graph.node("Where", is_higher, lower, lower_of_highest)
        highest = graph.node("Max", highest, upper)
        lowest = graph.node("Max", lowest, lower)
    of_others = graph.node("Sub", highest, lowest)
    return graph.node("Min", of_others, graph.node("Sub", second, lower_of_highest))


def _by_step(graph: GraphBuilder, arm: ArmGraph, own: IntArray) -> tuple[str, str]:
    """An arm's bounds by step: each of its states repeated while it lasts."""
    places = graph.whole(own)
    lower, upper = (graph.node("Gather", x, places, axis=0) for x in (arm.lower, arm.upper))
    return lower, upper


def states_by_step(pulls: IntArray, first_step: int, n_arms: int) -> IntArray:
    """Return which state every arm is in at each step looked back on, counted from the first.

    Parameters
    ----------
    pulls
        The arm observed at each step; −1 for one no longer in use.
    first_step
        The first step that counts.
    n_arms
        How many arms are in use.
    """
    pulled = pulls[first_step:, None] == np.arange(n_arms)
    start = np.zeros((1, n_arms), dtype=np.intp)
    return np.asarray(np.vstack([start, pulled.cumsum(axis=0)]), dtype=np.intp)


def unanswerable(graph: GraphBuilder, contexts: str, scores: str, real: Any, flag: Any) -> str:
    """Return where a context holds a non-finite number, or is so large that a score is not one.

    Parameters
    ----------
    graph
        Where to put the nodes.
    contexts
        Name of the transposed input, shape (d, batch).
    scores
        Name of the table that the pick was made from.
    real, flag
        The ONNX codes of the graph's real type and of truth values.
    """
    bad = graph.node("Or", graph.node("IsNaN", contexts), graph.node("IsInf", contexts))
    found = [
        graph.reduce("ReduceMax", graph.node("Cast", where, to=real), axis=0)
        for where in (bad, graph.node("IsNaN", scores))
    ]
    return graph.node("Cast", graph.node("Max", *found), to=flag)
