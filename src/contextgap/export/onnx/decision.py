"""A whole decision rule as a graph: which arm, what explains it, and rows that get no answer.

Tables have shape (arms, batch). Ties go to the lowest index, and to the earlier step. ONNX has no
triangular solve, so the file holds L⁻¹, computed in float64, and multiplies by it. Either way the
relative error of v = L⁻¹k is about that of one rounding times the condition number of L, which is
the square root of that of K + ridge·I.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.linalg.lapack import dtrtri

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.onnx.graph import GraphBuilder, KernelGraph
from contextgap.export.rule import (
    ArmTable,
    DecisionRule,
    SharedTable,
    observed_contexts,
    seen_ranges,
)
from contextgap.methods.recommenders import HighestMean, HighestUpper, SmallestGapInHistory
from contextgap.policy.fallback import Fallback, Status

ELIGIBLE = "eligible"  # the graph's input of truth values, shape (batch, arms)
# Rows of L⁻¹ multiplied at once: fewer leave out more zeros, more make for better products.
_PANEL = 128


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


def emit(graph: GraphBuilder, rule: DecisionRule, explain: bool, masked: bool = False) -> None:
    """Put a whole rule into a graph, with everything believed if it is to explain itself.

    A ``masked`` graph chooses among eligible arms, which are a second input.
    """
    _Emitter(graph, rule, masked, explain or rule.tolerance is not None).emit(explain)
    graph.prune()


class _Emitter:
    """A graph under construction, and the rule that is put into it, perhaps with bounds."""

    def __init__(self, graph: GraphBuilder, rule: DecisionRule, masked: bool, bounds: bool) -> None:
        self.graph, self.rule, self.masked = graph, rule, masked
        if masked:  # tables of shape (arms, batch), and where there is no arm and only one
            self.eligible = graph.node("Transpose", ELIGIBLE, perm=[1, 0])
            ones = graph.cast(self.eligible, graph.dtype)
            count = graph.reduce("ReduceSum", ones, axis=0)
            self.none = graph.node("Less", count, graph.real(0.5))
            self.alone = graph.node("Less", count, graph.real(1.5))
        self.kernel = KernelGraph(graph, observed_contexts(rule), rule.table, rule.warp)
        self.prior = graph.node("Mul", self.kernel.ones, graph.real(rule.prior))
        by_means = isinstance(rule.recommender, HighestMean)
        self.bounds, self.means_alone = bounds, by_means and not bounds

    def emit(self, explain: bool) -> None:
        graph, rule = self.graph, self.rule
        decided, status = self._decide(), ""
        if rule.fallback is not None:
            decided, status = self._with_fallback(rule.fallback, decided)
        bad = self._unanswerable(decided.scores)
        bad_row = self._row(bad)
        arm = graph.node("Where", bad_row, graph.whole(-1), decided.arm)
        graph.output("arm", arm, np.int64, "batch")
        if status:
            answered = graph.node("Where", bad_row, graph.whole(-1), status)
            graph.output("status", answered, np.int64, "batch")
        if explain:
            for name, table in self._as_observed(decided.believed).items():
                known = graph.node("Where", bad, graph.real(np.nan), table)
                by_row = graph.node("Transpose", known, perm=[1, 0])
                graph.output(name, by_row, graph.dtype, "batch", len(rule.labels))
            # What cannot be computed is not certified.
            bound = graph.node("Where", bad_row, graph.real(np.inf), decided.certificate)
            graph.output("certificate", bound, graph.dtype, "batch")

    def _as_observed(self, believed: dict[str, str]) -> dict[str, str]:
        """Return beliefs in the sign of what users observe: minus the rewards are the costs."""
        if not self.rule.costs:
            return believed
        mean, lower, upper = (
            self.graph.node("Neg", believed[name]) for name in ("mean", "lower", "upper")
        )
        return {**believed, "mean": mean, "lower": upper, "upper": lower}

    def _unanswerable(self, scores: str) -> str:
        """Where a context has no answer: its numbers, or a score, are not finite, or no arm is."""
        graph, contexts = self.graph, self.kernel.contexts
        bad = graph.node("Or", graph.node("IsNaN", contexts), graph.node("IsInf", contexts))
        found = [
            graph.reduce("ReduceMax", graph.cast(where, graph.dtype), axis=0)
            for where in (bad, graph.node("IsNaN", scores))
        ]
        unknown = graph.cast(graph.node("Max", *found), np.bool_)
        return graph.node("Or", unknown, self.none) if self.masked else unknown

    def _decide(self) -> Decided:
        graph, rule = self.graph, self.rule
        if rule.shared is not None:
            return self._decide_shared(rule.shared)
        values = self._values_by_arm()
        if self.means_alone:
            pairs = zip(rule.arms, values, strict=True)
            return self._pick("ArgMax", graph.stack([self._mean(*pair) for pair in pairs]))
        trios = list(zip(rule.arms, values, _first_states(rule), strict=True))
        arms = [self._arm(*each) for each in trios]
        last = [len(arm.weights) - first for arm, _, first in trios]
        today = [
            {name: graph.rows(each, at, at + 1) if at else each for name, each in arm.items()}
            for arm, at in zip(arms, last, strict=True)
        ]
        table = {name: graph.stack([arm[name] for arm in today]) for name in today[0]}
        if len(arms) == 1:  # an only arm has the gap 0
            gap = when_chosen = graph.node("Mul", self.kernel.ones, graph.real(0.0))
        else:
            upper = self._only(table["upper"], -np.inf)
            gap = when_chosen = self._eligible_gaps(self._gaps(table["lower"], upper))
            if isinstance(rule.recommender, SmallestGapInHistory):
                when_chosen = self._gaps_at_best_step(arms, _states_by_step(rule))
        return self._picked({**table, "gap": gap}, when_chosen)

    def _decide_shared(self, shared: SharedTable) -> Decided:
        values = self.kernel.values(self.rule.inner_kernel) if len(shared.support) else ""
        if not self.means_alone:
            table = self._shared_tables(shared, values)
            return self._picked(table, table["gap"])
        if not values:
            return self._pick("ArgMax", self.graph.stack([self.prior] * len(shared.alike)))
        product = self.graph.node("MatMul", self.graph.real(shared.weights), values)
        return self._pick("ArgMax", self.graph.node("Add", product, self.prior))

    def _picked(self, table: dict[str, str], gap_when_chosen: str) -> Decided:
        graph, recommender = self.graph, self.rule.recommender
        scores, operator = gap_when_chosen, "ArgMin"
        if isinstance(recommender, HighestMean | HighestUpper):
            name = "mean" if isinstance(recommender, HighestMean) else "upper"
            scores, operator = table[name], "ArgMax"
        decided = self._pick(operator, scores)
        if not self.bounds:
            return decided
        place = graph.node("Reshape", decided.arm, graph.whole([1, -1]))
        own_gap = graph.node("GatherElements", gap_when_chosen, place, axis=0)
        bound = graph.node("Max", own_gap, graph.real(0.0))
        return replace(decided, gap=own_gap, certificate=self._row(bound), believed=table)

    def _pick(self, operator: str, scores: str) -> Decided:
        """Return the first place of the highest (ArgMax) or lowest (ArgMin) score."""
        scores = self._only(scores, np.inf if operator == "ArgMin" else -np.inf)
        arm = self.graph.node(operator, scores, axis=0, keepdims=0, select_last_index=0)
        return Decided(arm, scores)

    def _only(self, table: str, otherwise: float) -> str:
        """Return a table with a number in place of what belongs to arms that are not eligible."""
        if not self.masked:
            return table
        return self.graph.node("Where", self.eligible, table, self.graph.real(otherwise))

    def _eligible_gaps(self, gap: str) -> str:
        """Return gaps over eligible rivals; an only arm has the gap 0, others that are not NaN."""
        if self.masked:
            gap = self.graph.node("Where", self.alone, self.graph.real(0.0), gap)
        return self._only(gap, np.nan)

    def _values_by_arm(self) -> list[str]:
        """Kernel values at each arm's support: computed for all at once, then separated."""
        arms = self.rule.arms
        if not len(self.kernel.support):
            return ["" for _ in arms]
        values = self.kernel.values(self.rule.inner_kernel)
        if self.rule.common or sum(len(table.support) > 0 for table in arms) == 1:
            return [values for _ in arms]
        ends = np.cumsum([len(table.support) for table in arms]).tolist()
        return [
            self.graph.rows(values, end - len(table.support), end)
            for end, table in zip(ends, arms, strict=True)
        ]

    def _mean(self, table: ArmTable, values: str) -> str:
        """Return prior + weights·k, shape (1, batch)."""
        if not len(table.weights):
            return self.prior
        product = self.graph.node("MatMul", self.graph.real(table.weights[None]), values)
        return self.graph.node("Add", product, self.prior)

    def _arm(self, table: ArmTable, values: str, first: int) -> dict[str, str]:
        """Return an arm's states after ``first`` observations of its own, one more, ..., all.

        Each of mean, std, lower and upper has shape (states, batch).
        """
        graph, n, diagonal = self.graph, len(table.weights), self._diagonal()
        mean, variance = [self.prior], [diagonal]
        if n:
            v = self._solved(table.factor, n, values)
            if first:
                head = v if first == n else graph.rows(v, 0, first)
                known = graph.node("MatMul", graph.real(table.innovations[None, :first]), head)
                explained = graph.reduce("ReduceSumSquare", head, axis=0)
                mean = [graph.node("Add", known, self.prior)]
                variance = [graph.node("Sub", diagonal, explained)]
            if first < n:
                tail = v if first == 0 else graph.rows(v, first, n)
                mean.append(graph.node("Mul", tail, graph.real(table.innovations[first:, None])))
                variance.append(graph.node("Neg", graph.node("Mul", tail, tail)))
        if len(table.added):  # of models without a history, so that there is one state
            u = self._solved(table.added, n, values)
            variance = [graph.node("Add", *variance, graph.reduce("ReduceSumSquare", u, axis=0))]
        means, variances = (self._running_sum(terms) for terms in (mean, variance))
        std = self._root(variances)
        half = graph.node("Mul", std, graph.real(table.reach[first:, None]))
        lower, upper = (graph.node(operator, means, half) for operator in ("Sub", "Add"))
        return {"mean": means, "std": std, "lower": lower, "upper": upper}

    def _shared_tables(self, table: SharedTable, values: str) -> dict[str, str]:
        """Return mean, std, lower, upper and gap, each of shape (arms, batch)."""
        # All arms use one factor, which the file holds once: v_a = L⁻¹(s_a∘k), where s_a says how
        # alike arm a is to the arm of each observation.
        graph, n, diagonal = self.graph, len(table.support), self._diagonal()
        means, variances = [self.prior] * len(table.alike), [diagonal] * len(table.alike)
        solutions = []
        for row in table.alike if n else ():
            own = graph.node("Mul", values, graph.real(row[table.whose][:, None]))
            solutions.append(self._solved(table.factor, n, own))
        if n:
            innovations = graph.real(table.innovations[None])
            known = [graph.node("MatMul", innovations, v) for v in solutions]
            means = [graph.node("Add", each, self.prior) for each in known]
            explained = [graph.reduce("ReduceSumSquare", v, axis=0) for v in solutions]
            variances = [graph.node("Sub", diagonal, each) for each in explained]
        mean, std = graph.stack(means), self._root(graph.stack(variances))
        half = graph.node("Mul", std, graph.real(table.reach))
        lower, upper = (graph.node(operator, mean, half) for operator in ("Sub", "Add"))
        gap = self._shared_gaps(table, solutions, means)
        return {"mean": mean, "std": std, "lower": lower, "upper": upper, "gap": gap}

    def _shared_gaps(self, table: SharedTable, solutions: list[str], means: list[str]) -> str:
        """Return the highest upper bound of another arm's lead over each arm."""
        graph, diagonal = self.graph, self._diagonal()
        if len(means) == 1:  # an only arm has the gap 0
            return graph.node("Mul", diagonal, graph.real(0.0))
        leads: list[list[str]] = [[] for _ in means]
        for a, b in combinations(range(len(means)), 2):
            variance = graph.node("Mul", diagonal, graph.real(2.0 - 2.0 * table.among[a, b]))
            if solutions:
                difference = graph.node("Sub", solutions[a], solutions[b])
                known = graph.reduce("ReduceSumSquare", difference, axis=0)
                variance = graph.node("Sub", variance, known)
            half = graph.node("Mul", self._root(variance), graph.real(table.reach))
            for own, other in ((a, b), (b, a)):
                lead = graph.node("Sub", means[other], means[own])
                highest = graph.node("Add", lead, half)
                if self.masked:
                    nothing, can = graph.real(-np.inf), graph.rows(self.eligible, other, other + 1)
                    highest = graph.node("Where", can, highest, nothing)
                leads[own].append(highest)
        gap = graph.stack([graph.reduce("ReduceMax", graph.stack(each), axis=0) for each in leads])
        return self._eligible_gaps(gap)

    def _gaps(self, lower: str, upper: str) -> str:
        """Every arm's gap, of at least two, from tables of bounds."""
        graph, both = self.graph, self.graph.highest_two(upper)
        highest, second = graph.rows(both, 0, 1), graph.rows(both, 1, 2)
        # Where two arms share the highest upper, second equals highest and either is right.
        rival = graph.node("Where", graph.node("Equal", upper, highest), second, highest)
        return graph.node("Sub", rival, lower)

    def _gaps_at_best_step(self, arms: list[dict[str, str]], states: IntArray) -> str:
        """Every arm's gap at the step whose smallest gap is smallest; ``states`` are by step."""
        graph, smallest = self.graph, self._smallest_gaps(arms, states)
        step = graph.node("ArgMin", smallest, axis=0, keepdims=1, select_last_index=0)
        lower, upper = [], []
        for arm, own in zip(arms, states.T, strict=True):
            state = graph.node("Gather", graph.whole(own), step, axis=0)
            lower.append(graph.node("GatherElements", arm["lower"], state, axis=0))
            upper.append(graph.node("GatherElements", arm["upper"], state, axis=0))
        return self._gaps(upper=graph.stack(upper), lower=graph.stack(lower))

    def _smallest_gaps(self, arms: list[dict[str, str]], states: IntArray) -> str:
        """The smallest gap at every step, shape (steps, batch)."""
        # With h the arm of highest upper U1, and U2 the second highest, it is
        # min(U1 − max lower, U2 − lower_h); see ``contextgap.methods.recommenders.history``.
        graph = self.graph
        lower, upper = self._by_step(arms[0], states[:, 0])
        highest, second, lowest, lower_of_highest = upper, "", lower, lower
        for arm, own in zip(arms[1:], states.T[1:], strict=True):
            lower, upper = self._by_step(arm, own)
            beaten = graph.node("Min", highest, upper)
            second = graph.node("Max", second, beaten) if second else beaten
            is_higher = graph.node("Greater", upper, highest)
            lower_of_highest = graph.node("Where", is_higher, lower, lower_of_highest)
            highest = graph.node("Max", highest, upper)
            lowest = graph.node("Max", lowest, lower)
        of_others = graph.node("Sub", highest, lowest)
        return graph.node("Min", of_others, graph.node("Sub", second, lower_of_highest))

    def _by_step(self, arm: dict[str, str], own: IntArray) -> tuple[str, str]:
        places = self.graph.whole(own)
        lower, upper = (
            self.graph.node("Gather", x, places, axis=0) for x in (arm["lower"], arm["upper"])
        )
        return lower, upper

    def _with_fallback(self, fallback: Fallback, decided: Decided) -> tuple[Decided, str]:
        graph = self.graph
        falls = outside = self._outside(fallback)
        reason = graph.whole([[Status.RECOMMENDED]])
        if fallback.tolerance is not None:
            enough = graph.node("LessOrEqual", decided.gap, graph.real(fallback.tolerance))
            too_large = graph.node("Not", enough)  # not Greater: NaN certifies nothing
            reason = graph.node("Where", too_large, graph.whole([[Status.BOUND_TOO_LARGE]]), reason)
            falls = graph.node("Or", outside, too_large)
        status = graph.node("Where", outside, graph.whole([[Status.OUTSIDE]]), reason)
        if self.masked:
            can = graph.rows(self.eligible, fallback.column, fallback.column + 1)
            wanted = graph.node("And", falls, graph.node("Not", can))
            status = graph.node("Where", wanted, graph.whole([[Status.NO_FALLBACK]]), status)
            falls = graph.node("And", falls, can)
        falls_row = self._row(falls)
        answered = replace(
            decided,
            arm=graph.node("Where", falls_row, graph.whole(fallback.column), decided.arm),
            # Scores do not matter there, even if they cannot be computed.
            scores=graph.node("Where", falls, graph.real(0.0), decided.scores),
        )
        if decided.believed:
            certificate = self._certificate(fallback.column, falls_row, decided)
            answered = replace(answered, certificate=certificate)
        return answered, self._row(status)

    def _certificate(self, fallback: int, falls: str, decided: Decided) -> str:
        """Return the certificate of the arm answered; infinite where it cannot be computed."""
        graph = self.graph
        gap = self._row(graph.rows(decided.believed["gap"], fallback, fallback + 1))
        bound = graph.node("Max", gap, graph.real(0.0))
        found = graph.node("Where", falls, bound, decided.certificate)
        unknown = graph.node("IsNaN", graph.node("Where", falls, gap, found))
        return graph.node("Where", unknown, graph.real(np.inf), found)

    def _outside(self, fallback: Fallback) -> str:
        graph, contexts = self.graph, self.kernel.contexts
        low, high = seen_ranges(fallback, self.rule, graph.dtype)
        below = graph.node("Less", contexts, graph.real(low[:, None]))
        above = graph.node("Greater", contexts, graph.real(high[:, None]))
        beyond = graph.cast(graph.node("Or", below, above), graph.dtype)
        return graph.cast(graph.reduce("ReduceMax", beyond, axis=0), np.bool_)

    def _solved(self, packed: FloatArray, n: int, values: str) -> str:
        """Return L⁻¹k, shape (n, batch), from the rows of L one after the other."""
        graph, factor = self.graph, np.zeros((n, n))
        factor[np.tril_indices(n)] = packed
        inverse, _ = dtrtri(factor, lower=1)  # there is one: a factor has a positive diagonal
        inverse = np.tril(inverse)
        products = []
        for start, end in _panels(n):
            left = values if end == n else graph.rows(values, 0, end)
            products.append(graph.node("MatMul", graph.real(inverse[start:end, :end]), left))
        return graph.stack(products)

    def _running_sum(self, terms: list[str]) -> str:
        if len(terms) == 1:
            return terms[0]
        return self.graph.node("CumSum", self.graph.stack(terms), self.graph.whole(0))

    def _diagonal(self) -> str:
        return self.kernel.diagonal(self.rule.inner_kernel)

    def _root(self, variance: str) -> str:
        return self.graph.node("Sqrt", self.graph.node("Max", variance, self.graph.real(0.0)))

    def _row(self, values: str) -> str:
        return self.graph.node("Reshape", values, self.graph.whole([-1]))


def inverse_size(n: int) -> int:
    """Return how many numbers of L⁻¹ a file holds for an arm of ``n`` observations."""
    return sum((end - start) * end for start, end in _panels(n))


def _panels(n: int) -> list[tuple[int, int]]:
    """Stretches of rows: what is right of a stretch's last diagonal entry is zero and left out."""
    return [(start, min(start + _PANEL, n)) for start in range(0, n, _PANEL)]


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
