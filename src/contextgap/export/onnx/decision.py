"""A whole decision rule as a graph: which arm, what explains it, and rows that get no answer.

Tables have shape (arms, batch). Ties go to the lowest index, and to the earlier step.
"""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.eligible import EligibleArms
from contextgap.export.onnx.fallback import Decided, with_fallback
from contextgap.export.onnx.kernels import KernelGraph
from contextgap.export.onnx.posterior import ArmGraph, arm_graph, mean_alone
from contextgap.export.onnx.shared import shared_means, shared_tables
from contextgap.export.rule import DecisionRule, SharedTable
from contextgap.methods.recommenders import HighestMean, HighestUpper, SmallestGapInHistory


def emit(graph: GraphBuilder, rule: DecisionRule, explain: bool, masked: bool = False) -> None:
    """Put a whole rule into a graph, with everything believed if it is to explain itself.

    A ``masked`` graph chooses among eligible arms, which are a second input.
    """
    kernel = KernelGraph(graph, _support(rule), rule.table)
    eligible = EligibleArms(graph) if masked else None
    decided = _decide(graph, rule, kernel, eligible, explain or rule.tolerance is not None)
    status = ""
    if rule.fallback is not None:
        decided, status = with_fallback(graph, rule.fallback, rule, kernel, eligible, decided)
    bad = _unanswerable(graph, kernel.contexts, decided.scores)
    if eligible is not None:
        bad = graph.node("Or", bad, eligible.none)
    bad_row = graph.node("Reshape", bad, graph.whole([-1]))
    arm = graph.node("Where", bad_row, graph.whole(-1), decided.arm)
    graph.output("arm", arm, np.int64, "batch")
    if status:
        answered = graph.node("Where", bad_row, graph.whole(-1), status)
        graph.output("status", answered, np.int64, "batch")
    if explain:
        for name, table in _told(graph, decided.believed, rule.costs).items():
            known = graph.node("Where", bad, graph.real(np.nan), table)
            by_row = graph.node("Transpose", known, perm=[1, 0])
            graph.output(name, by_row, graph.dtype, "batch", len(rule.labels))
        # What cannot be computed is not certified.
        bound = graph.node("Where", bad_row, graph.real(np.inf), decided.certificate)
        graph.output("certificate", bound, graph.dtype, "batch")
    graph.prune()


def _told(graph: GraphBuilder, believed: dict[str, str], costs: bool) -> dict[str, str]:
    """Return beliefs in the sign that the user tells: minus the rewards are the costs."""
    if not costs:
        return believed
    mean, lower, upper = (graph.node("Neg", believed[name]) for name in ("mean", "lower", "upper"))
    return {**believed, "mean": mean, "lower": upper, "upper": lower}


def _decide(
    graph: GraphBuilder,
    rule: DecisionRule,
    kernel: KernelGraph,
    eligible: EligibleArms | None,
    explain: bool,
) -> Decided:
    """Return what is decided without a fallback, with bounds if they are to explain it."""
    prior = graph.node("Mul", kernel.ones, graph.real(rule.prior))
    if rule.shared is not None:
        return _decide_shared(graph, rule, rule.shared, kernel, prior, eligible, explain)
    values = _values_by_arm(graph, rule, kernel)
    if isinstance(rule.recommender, HighestMean) and not explain:
        means = [
            mean_alone(graph, table, own, prior)
            for table, own in zip(rule.arms, values, strict=True)
        ]
        return _highest(graph, graph.stack(means), eligible)
    diagonal = kernel.diagonal(rule.kernel)
    arms = [
        arm_graph(graph, table, own, diagonal, prior, first)
        for table, own, first in zip(rule.arms, values, _first_states(rule), strict=True)
    ]
    return _choose(graph, rule, arms, kernel.ones, eligible, explain)


def _choose(
    graph: GraphBuilder,
    rule: DecisionRule,
    arms: list[ArmGraph],
    ones: str,
    eligible: EligibleArms | None,
    explain: bool,
) -> Decided:
    today = [arm.today(graph) for arm in arms]
    table = {
        name: graph.stack([getattr(arm, name) for arm in today])
        for name in ("mean", "std", "lower", "upper")
    }
    if len(arms) == 1:  # an only arm has the gap 0
        gap = gap_when_chosen = graph.node("Mul", ones, graph.real(0.0))
    else:
        upper = table["upper"] if eligible is None else eligible.only(table["upper"], -np.inf)
        gap = gap_when_chosen = _gaps(graph, table["lower"], upper)
        if eligible is not None:
            gap = gap_when_chosen = eligible.gaps(gap)
        if isinstance(rule.recommender, SmallestGapInHistory):
            gap_when_chosen = _gaps_at_best_step(graph, arms, _states_by_step(rule))
    return _picked(graph, rule, {**table, "gap": gap}, gap_when_chosen, eligible, explain)


def _decide_shared(
    graph: GraphBuilder,
    rule: DecisionRule,
    shared: SharedTable,
    kernel: KernelGraph,
    prior: str,
    eligible: EligibleArms | None,
    explain: bool,
) -> Decided:
    """Do the same for arms that share what they learn."""
    values = kernel.values(rule.kernel) if len(shared.support) else ""
    if isinstance(rule.recommender, HighestMean) and not explain:
        return _highest(graph, shared_means(graph, shared, values, prior), eligible)
    diagonal = kernel.diagonal(rule.kernel)
    table = shared_tables(graph, shared, values, diagonal, prior, eligible)
    return _picked(graph, rule, table, table["gap"], eligible, explain)


def _picked(
    graph: GraphBuilder,
    rule: DecisionRule,
    table: dict[str, str],
    gap_when_chosen: str,
    eligible: EligibleArms | None,
    explain: bool,
) -> Decided:
    """Pick an arm by what is believed, and say why if that is asked for."""
    scores, operator = gap_when_chosen, "ArgMin"
    if isinstance(rule.recommender, HighestMean | HighestUpper):
        name = "mean" if isinstance(rule.recommender, HighestMean) else "upper"
        scores, operator = table[name], "ArgMax"
    if eligible is not None:
        scores = eligible.only(scores, np.inf if operator == "ArgMin" else -np.inf)
    chosen = _pick(graph, operator, scores)
    if not explain:
        return Decided(chosen, scores)
    place = graph.node("Reshape", chosen, graph.whole([1, -1]))
    own_gap = graph.node("GatherElements", gap_when_chosen, place, axis=0)
    bound = graph.node("Max", own_gap, graph.real(0.0))
    certificate = graph.node("Reshape", bound, graph.whole([-1]))
    return Decided(chosen, scores, own_gap, certificate, table)


def _highest(graph: GraphBuilder, means: str, eligible: EligibleArms | None) -> Decided:
    scores = means if eligible is None else eligible.only(means, -np.inf)
    return Decided(_pick(graph, "ArgMax", scores), scores)


def _support(rule: DecisionRule) -> FloatArray:
    if rule.shared is not None:
        return rule.shared.support
    if rule.common:
        return rule.arms[0].support
    return np.vstack([table.support for table in rule.arms])


def _values_by_arm(graph: GraphBuilder, rule: DecisionRule, kernel: KernelGraph) -> list[str]:
    """Kernel values at each arm's support: computed for all at once, then told apart."""
    if not len(kernel.support):
        return ["" for _ in rule.arms]
    values = kernel.values(rule.kernel)
    ends = np.cumsum([len(table.support) for table in rule.arms]).tolist()
    if rule.common or sum(len(table.support) > 0 for table in rule.arms) == 1:
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


def _states_by_step(rule: DecisionRule) -> IntArray:
    """Which state every arm is in at each step looked back on, counted from the first."""
    pulled = rule.pulls[rule.first_step :, None] == np.arange(len(rule.arms))
    start = np.zeros((1, len(rule.arms)), dtype=np.intp)
    return np.asarray(np.vstack([start, pulled.cumsum(axis=0)]), dtype=np.intp)


def _pick(graph: GraphBuilder, operator: str, scores: str) -> str:
    """The first place of the highest (ArgMax) or lowest (ArgMin) score, shape (batch,)."""
    return graph.node(operator, scores, axis=0, keepdims=0, select_last_index=0)


def _gaps(graph: GraphBuilder, lower: str, upper: str) -> str:
    """Every arm's gap, of at least two, from tables of bounds."""
    both = graph.highest_two(upper)
    highest, second = graph.rows(both, 0, 1), graph.rows(both, 1, 2)
    # Where two arms share the highest upper, second equals highest and either is right.
    rival = graph.node("Where", graph.node("Equal", upper, highest), second, highest)
    return graph.node("Sub", rival, lower)


def _gaps_at_best_step(graph: GraphBuilder, arms: list[ArmGraph], states: IntArray) -> str:
    """Every arm's gap at the step whose smallest gap is smallest, for each context.

    Row t of ``states`` says which state each arm is in at step t.
    """
    smallest = _smallest_gaps(graph, arms, states)
    step = graph.node("ArgMin", smallest, axis=0, keepdims=1, select_last_index=0)
    lower, upper = [], []
    for arm, own in zip(arms, states.T, strict=True):
        state = graph.node("Gather", graph.whole(own), step, axis=0)
        lower.append(graph.node("GatherElements", arm.lower, state, axis=0))
        upper.append(graph.node("GatherElements", arm.upper, state, axis=0))
    return _gaps(graph, upper=graph.stack(upper), lower=graph.stack(lower))


def _smallest_gaps(graph: GraphBuilder, arms: list[ArmGraph], states: IntArray) -> str:
    """The smallest gap at every step, shape (steps, batch).

    With h the arm of highest upper U1, and U2 the second highest, it is
    min(U1 − max lower, U2 − lower_h); see ``contextgap.methods.recommenders.history``.
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


def _unanswerable(graph: GraphBuilder, contexts: str, scores: str) -> str:
    """Where a context holds a non-finite number, or is so large that a score is not one."""
    bad = graph.node("Or", graph.node("IsNaN", contexts), graph.node("IsInf", contexts))
    found = [
        graph.reduce("ReduceMax", graph.cast(where, graph.dtype), axis=0)
        for where in (bad, graph.node("IsNaN", scores))
    ]
    return graph.cast(graph.node("Max", *found), np.bool_)
