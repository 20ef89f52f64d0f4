"""A safe arm as a graph: where it is answered in place of the recommended one, and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.eligible import EligibleArms
from contextgap.export.onnx.kernels import KernelGraph
from contextgap.export.rule import DecisionRule
from contextgap.export.typed_rows import seen_ranges
from contextgap.policy.fallback import Fallback, Status


@dataclass(frozen=True)
class Decided:
    """Names of an arm, shape (batch,), and of the table of scores that it was picked from.

    Where bounds are computed, also those of the arm's gap, shape (1, batch), of its certificate,
    shape (batch,), and of what is believed about all arms, each of shape (arms, batch).
    """

    arm: str
    scores: str
    gap: str = ""
    certificate: str = ""
    believed: dict[str, str] = field(default_factory=dict)


def with_fallback(
    graph: GraphBuilder,
    fallback: Fallback,
    rule: DecisionRule,
    kernel: KernelGraph,
    eligible: EligibleArms | None,
    decided: Decided,
) -> tuple[Decided, str]:
    """Return a decision with the fallback in its place where it is answered, and the status."""
    falls = outside = _outside(graph, fallback, rule, kernel)
    reason = graph.whole([[Status.RECOMMENDED]])
    if fallback.tolerance is not None:
        enough = graph.node("LessOrEqual", decided.gap, graph.real(fallback.tolerance))
        too_large = graph.node("Not", enough)  # not Greater: NaN certifies nothing
        reason = graph.node("Where", too_large, graph.whole([[Status.BOUND_TOO_LARGE]]), reason)
        falls = graph.node("Or", outside, too_large)
    status = graph.node("Where", outside, graph.whole([[Status.OUTSIDE]]), reason)
    if eligible is not None:
        can = eligible.row(fallback.column)
        wanted = graph.node("And", falls, graph.node("Not", can))
        status = graph.node("Where", wanted, graph.whole([[Status.NO_FALLBACK]]), status)
        falls = graph.node("And", falls, can)
    falls_row, status_row = (_row(graph, values) for values in (falls, status))
    answered = replace(
        decided,
        arm=graph.node("Where", falls_row, graph.whole(fallback.column), decided.arm),
        # Scores do not matter there, even if they cannot be computed.
        scores=graph.node("Where", falls, graph.real(0.0), decided.scores),
    )
    if decided.believed:
        certificate = _certificate(graph, fallback.column, falls_row, decided)
        answered = replace(answered, certificate=certificate)
    return answered, status_row


def _certificate(graph: GraphBuilder, fallback: int, falls: str, decided: Decided) -> str:
    """Return the certificate of the arm answered; infinite where it cannot be computed."""
    gap = _row(graph, graph.rows(decided.believed["gap"], fallback, fallback + 1))
    bound = graph.node("Max", gap, graph.real(0.0))
    found = graph.node("Where", falls, bound, decided.certificate)
    unknown = graph.node("IsNaN", graph.node("Where", falls, gap, found))
    return graph.node("Where", unknown, graph.real(np.inf), found)


def _outside(
    graph: GraphBuilder, fallback: Fallback, rule: DecisionRule, kernel: KernelGraph
) -> str:
    """Say which contexts lie outside what was seen, shape (1, batch)."""
    low, high = seen_ranges(fallback, rule, graph.dtype)
    below = graph.node("Less", kernel.contexts, graph.real(low[:, None]))
    above = graph.node("Greater", kernel.contexts, graph.real(high[:, None]))
    beyond = graph.cast(graph.node("Or", below, above), graph.dtype)
    return graph.cast(graph.reduce("ReduceMax", beyond, axis=0), np.bool_)


def _row(graph: GraphBuilder, values: str) -> str:
    return graph.node("Reshape", values, graph.whole([-1]))
