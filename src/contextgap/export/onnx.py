"""Write a frozen policy as an ONNX graph, and run one.

Tables have shape (arms, batch). Ties go to the lowest index, and to the earlier step. ONNX has no
triangular solve, so the file holds L⁻¹, computed in float64: the relative error of v = L⁻¹k is
about one rounding times the condition number of L, as with a solve.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, Mask, decode_label, encode_label, read_eligible
from contextgap.base.components import study_import
from contextgap.base.files import FileFormatError, whole_file
from contextgap.export.graph import GraphBuilder, KernelGraph, Value
from contextgap.export.rule import (
    ArmTable,
    DecisionRule,
    ExportError,
    SharedTable,
    check_kernel,
    check_masks,
    comparison_contexts,
    decision_rule,
    observed_contexts,
    read_rows,
    seen_ranges,
    warn_of_rounding,
)
from contextgap.policy import Policy
from contextgap.policy.state import Fallback, Status, read_truth
from contextgap.tables.columns import TableSchema
from contextgap.tables.contexts import ContextSchema

# The oldest that says which of equal scores ArgMin and ArgMax take (select_last_index).
OLDEST_OPSET = 12
PREFIX = "contextgap."  # of the keys of metadata
# Protocol buffers, of which an ONNX file is one, end here.
_LARGEST_FILE = 2**31 - 1
_COMPARED = 200  # contexts to round
# Numbers per value and run: 2 MB, which caches hold.
_BLOCK = 2**18
_ELIGIBLE = "eligible"  # the input of shape (batch, arms)
# Rows of L⁻¹ multiplied at once: fewer leave out more zeros.
_PANEL = 128


@dataclass(frozen=True)
class OnnxFile:
    """A graph that was written: where, its size, its operators, and what it computes."""

    path: Path
    size: int
    opset: int
    outputs: tuple[str, ...]


def write_onnx(
    policy: Policy,
    path: str | os.PathLike[str],
    *,
    float32: bool = False,
    explain: bool = False,
    eligible: bool = False,
    opset: int = OLDEST_OPSET,
) -> OnnxFile:
    """Write a policy as an ONNX graph, as ``Policy.to_onnx`` does, which says what parameters mean.

    ``opset`` is the version of the operators, at least 12.

    See Also
    --------
    Policy.to_onnx : The same as a method.

    Examples
    --------
    >>> from contextgap.export.onnx import GraphPolicy, write_onnx
    >>> file = write_onnx(policy, "policy.onnx")
    >>> GraphPolicy("policy.onnx").recommend([[0.5, 0.0]]).tolist()
    [1]
    """
    onnx = study_import("onnx", extra="onnx")
    checks.whole("opset", opset, least=OLDEST_OPSET)
    for name, value in (("float32", float32), ("explain", explain), ("eligible", eligible)):
        read_truth(name, value)
    rule = decision_rule(policy)
    if eligible:
        check_masks(rule)
    check_kernel(rule.inner_kernel, "exported to ONNX")
    if explain or rule.compares != "mean" or rule.tolerance is not None:
        panels = (panel for count in _factors(rule) for panel in _panels(count))
        size = sum((end - start) * end for start, end in panels) * (4 if float32 else 8)
        if size > _LARGEST_FILE:
            raise ExportError(
                f"the inverse factors take {size / 2**30:.1f} GiB, more than the 2 GiB an ONNX "
                "file can have; explore fewer steps, deploy by HighestMean or export with "
                "float32=True"
            )
    graph = GraphBuilder(np.float32 if float32 else np.float64, opset)
    _Emitter(graph, rule, eligible, explain or rule.tolerance is not None).emit(explain)
    graph.prune()
    if float32:
        warn_of_rounding(policy, rule, comparison_contexts(policy, rule, _COMPARED, None))
    target = Path(path)
    content = _model(onnx.helper, graph, rule, eligible).SerializeToString()
    with whole_file(target) as file:
        file.write(content)
    return OnnxFile(target, len(content), opset, tuple(graph.outputs))


def _model(helper: Any, graph: GraphBuilder, rule: DecisionRule, eligible: bool) -> Any:
    given = [("contexts", graph.dtype, rule.inputs)]
    given += [(_ELIGIBLE, np.dtype(np.bool_), len(rule.labels))] if eligible else []
    inputs = [
        helper.make_tensor_value_info(name, graph.type_code(dtype), ["batch", size])
        for name, dtype, size in given
    ]
    outputs = list(graph.outputs.values())
    made = helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.initializers)
    opsets = [helper.make_opsetid("", graph.opset)]
    described = _metadata(rule)
    model = helper.make_model(
        made,
        opset_imports=opsets,
        # The oldest, so that old runtimes open the file.
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="contextgap",
        producer_version=described[f"{PREFIX}version"],
    )
    helper.set_model_props(model, described)
    return model


def _metadata(rule: DecisionRule) -> dict[str, str]:
    try:
        labels = [encode_label(label) for label in rule.labels]
    except TypeError as error:
        raise ExportError(str(error)) from None
    steps = len(rule.pulls) + 1 - rule.first_step
    structured: dict[str, Any] = {
        "labels": labels,
        "columns": None if rule.columns is None else list(rule.columns),
        "dimension": rule.inputs,
        "recommender": rule.recommender.describe(),
        "kernel": rule.kernel.describe(),
        "probability": rule.probability,
        # The graph's largest value: kernel values, or bounds at every step.
        "numbers_per_context": max(sum(_factors(rule)), steps, len(labels)),
    }
    if rule.table is not None:
        structured["table"] = rule.table.describe()
    if rule.fallback is not None:
        structured["fallback"] = rule.fallback.describe()
    texts = {f"{PREFIX}{key}": json.dumps(value) for key, value in structured.items()}
    return {**texts, f"{PREFIX}version": version("contextgap")}


def _factors(rule: DecisionRule) -> list[int]:
    """How many points each factor is of."""
    if rule.common:
        return [len(rule.arms[0].support)] * (len(rule.arms) + 1)
    tables = rule.arms if rule.shared is None else (rule.shared,)
    return [len(table.support) for table in tables]


class GraphPolicy:
    """A policy read from an ONNX file and run by onnxruntime on the processor.

    Parameters
    ----------
    path
        A file that ``write_onnx`` wrote.
    threads
        How many threads one run may use; 0 leaves it to onnxruntime.

    See Also
    --------
    Policy.to_onnx : Writes the file.

    Examples
    --------
    >>> file = policy.to_onnx("policy.onnx")
    >>> graph = cg.export.onnx.GraphPolicy("policy.onnx")
    >>> graph.recommend([[0.5, 0.0]]).tolist()
    [1]
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int = 0) -> None:
        runtime = study_import("onnxruntime", extra="onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = checks.whole("threads", threads, least=0)
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(
            os.fspath(path), options, providers=["CPUExecutionProvider"]
        )
        about = self._session.get_modelmeta().custom_metadata_map
        if f"{PREFIX}labels" not in about:
            raise FileFormatError(f"{path} is an ONNX file, but not one that contextgap wrote")
        known = {
            key.removeprefix(PREFIX): json.loads(value)
            for key, value in about.items()
            if key.startswith(PREFIX) and key != f"{PREFIX}version"
        }
        self.version: str = about[f"{PREFIX}version"]
        self.labels: tuple[Label, ...] = tuple(decode_label(label) for label in known["labels"])
        self.columns: tuple[str, ...] | None = known["columns"] and tuple(known["columns"])
        self.dimension: int = known["dimension"]
        described = known.get("table")
        self.table = None if described is None else TableSchema.restored(described)
        self.recommender: dict[str, Any] = known["recommender"]
        self.kernel: dict[str, Any] = known["kernel"]
        self.probability: float | None = known["probability"]
        self.outputs = tuple(output.name for output in self._session.get_outputs())
        self.takes_arms = _ELIGIBLE in [each.name for each in self._session.get_inputs()]
        single = self._session.get_inputs()[0].type == "tensor(float)"
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self._rows = max(1, _BLOCK // known["numbers_per_context"])

    def recommend(self, contexts: Any, *, arms: Any = None) -> NDArray[np.int64]:
        """Return the index of the arm to deploy at each context; −1 where there is no answer.

        Parameters
        ----------
        contexts
            Shape (n, d), or a DataFrame with the columns by name. Where columns have types, arrays
            hold codes in place of levels; all else holds raw levels and dates.
        arms
            The eligible arms, as for ``Policy.recommend``, of a file written with
            ``eligible=True``. Rows without any get no answer.

        Examples
        --------
        >>> file = policy.to_onnx("policy.onnx")
        >>> cg.export.onnx.GraphPolicy("policy.onnx").recommend([[0.5, 0.0], [-0.5, 0.0]]).tolist()
        [1, 0]
        """
        return self._run(contexts, arms, ("arm",))["arm"]

    def status(self, contexts: Any, *, arms: Any = None) -> NDArray[np.int64]:
        """Return the status of every row, as ``Policy.status`` does; −1 for no answer.

        .. versionadded:: 0.2

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        Examples
        --------
        >>> file = policy.with_fallback("left").to_onnx("policy.onnx")
        >>> cg.export.onnx.GraphPolicy("policy.onnx").status([[0.5, 0.0], [9.0, 0.0]]).tolist()
        [0, 2]
        """
        if "status" not in self.outputs:
            raise ValueError("the policy has no fallback, so all that is answered is recommended")
        return self._run(contexts, arms, ("status",))["status"]

    def explain(self, contexts: Any, *, arms: Any = None) -> dict[str, NDArray[Any]]:
        """Return everything the graph puts out: the arm, what is believed, and the certificate.

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        Examples
        --------
        >>> file = policy.to_onnx("policy.onnx", explain=True)
        >>> cg.export.onnx.GraphPolicy("policy.onnx").explain([[0.5, 0.0]])["mean"].round(1)
        array([[-0.5,  0.5]])
        """
        if "certificate" not in self.outputs:
            raise ValueError("the file holds decisions only; write it with explain=True")
        return self._run(contexts, arms, self.outputs)

    def details(self, contexts: Any, arms: Any) -> dict[str, Any]:
        """Return statuses and certificates, if the graph puts them out.

        .. versionadded:: 0.3

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        Examples
        --------
        >>> file = policy.with_fallback("left").to_onnx("policy.onnx")
        >>> list(cg.export.onnx.GraphPolicy("policy.onnx").details(contexts, None))
        ['status']
        """
        wanted = tuple(name for name in ("status", "certificate") if name in self.outputs)
        return self._run(contexts, arms, wanted) if wanted else {}

    def _run(self, contexts: Any, arms: Any, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        rows = self._read(contexts)
        given: dict[str, NDArray[Any]] = {"contexts": rows}
        if self.takes_arms:
            given[_ELIGIBLE] = self._mask(arms, len(rows))
        elif arms is not None:
            raise ValueError("the file takes no eligible arms; write it with eligible=True")
        blocks = []
        for first in range(0, max(1, len(rows)), self._rows):
            block = slice(first, first + self._rows)
            parts = {name: np.ascontiguousarray(each[block]) for name, each in given.items()}
            blocks.append(self._session.run(wanted, parts))
        return {name: np.concatenate(parts) for name, *parts in zip(wanted, *blocks, strict=True)}

    def _mask(self, arms: Any, rows: int) -> Mask:
        everything = (rows, len(self.labels))
        if isinstance(arms, np.ndarray) and arms.dtype == np.bool_ and arms.shape == everything:
            return arms  # the graph answers also if no arm is left
        mask = read_eligible(arms, self.labels, rows, single=False)
        return np.ones(everything, dtype=bool) if mask is None else mask

    def _read(self, contexts: Any) -> NDArray[Any]:
        numbers = isinstance(contexts, np.ndarray) and contexts.dtype.kind in "fiub"
        if self.table is None:
            # What is not finite is the graph's to answer.
            _, values = ContextSchema(self.dimension, self.columns).in_order(contexts)
        elif numbers:
            values = contexts
        else:
            values = read_rows(self.table, contexts)
        with np.errstate(over="ignore"):  # infinite then
            rows = np.ascontiguousarray(values, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ValueError(
                f"contexts must have shape (n, {self.dimension}), got {np.shape(values)}"
            )
        return rows


@dataclass(frozen=True)
class _Decided:
    """An arm, shape (batch,), and the scores that it was picked from.

    Where bounds are computed, also what is ``believed``, tables of shape (arms, batch), with the
    arm's gap as "own" and its "certificate".
    """

    arm: Value
    scores: Value
    believed: dict[str, Value] = field(default_factory=dict)


class _Emitter:
    def __init__(self, graph: GraphBuilder, rule: DecisionRule, masked: bool, bounds: bool) -> None:
        self.graph, self.rule, self.masked = graph, rule, masked
        if masked:  # by (arms, batch)
            self.eligible = graph.input(_ELIGIBLE).transposed
            count = self.eligible.cast(graph.dtype).over_rows("ReduceSum")
            self.none, self.alone = count < 0.5, count < 1.5
        self.kernel = KernelGraph(graph, observed_contexts(rule), rule.table, rule.warp)
        self.prior = self.kernel.ones * rule.prior
        self.bounds, self.means_alone = bounds, rule.compares == "mean" and not bounds

    def emit(self, explain: bool) -> None:
        graph, rule = self.graph, self.rule
        decided, status = self._decide(), None
        if rule.fallback is not None:
            decided, status = self._with_fallback(rule.fallback, decided)
        bad = self._unanswerable(decided.scores)
        bad_row = bad.row
        graph.output("arm", bad_row.where(-1, decided.arm), np.int64, "batch")
        if status is not None:
            graph.output("status", bad_row.where(-1, status), np.int64, "batch")
        if explain:
            for name, table in self._as_observed(decided.believed).items():
                by_row = bad.where(np.nan, table).transposed
                graph.output(name, by_row, graph.dtype, "batch", len(rule.labels))
            # What cannot be computed is not certified.
            bound = bad_row.where(np.inf, decided.believed["certificate"])
            graph.output("certificate", bound, graph.dtype, "batch")

    def _as_observed(self, believed: dict[str, Value]) -> dict[str, Value]:
        """Return beliefs in the sign of what users observe."""
        shown = {name: believed[name] for name in ("mean", "std", "lower", "upper", "gap")}
        if not self.rule.costs:
            return shown
        mean, lower, upper = (-believed[name] for name in ("mean", "lower", "upper"))
        return {**shown, "mean": mean, "lower": upper, "upper": lower}

    def _unanswerable(self, scores: Value) -> Value:
        """Where contexts or scores are not finite, or no arm is eligible."""
        contexts = self.kernel.contexts
        wrong = contexts.node("IsNaN") | contexts.node("IsInf"), scores.node("IsNaN")
        found = [each.cast(self.graph.dtype).over_rows("ReduceMax") for each in wrong]
        unknown = self.graph.node("Max", *found).cast(np.bool_)
        return unknown | self.none if self.masked else unknown

    def _decide(self) -> _Decided:
        graph, rule = self.graph, self.rule
        if rule.shared is not None:
            return self._decide_shared(rule.shared)
        values = self._values_by_arm()
        if self.means_alone:
            pairs = zip(rule.arms, values, strict=True)
            return self._pick("ArgMax", graph.stack([self._mean(*pair) for pair in pairs]))
        # Observations of each arm at the first step that matters.
        firsts = [len(table.weights) for table in rule.arms]
        pulled = rule.pulls[:, None] == np.arange(len(rule.arms))
        if rule.compares == "history":
            firsts = pulled[: rule.first_step].sum(axis=0).tolist()
        trios = list(zip(rule.arms, values, firsts, strict=True))
        arms = [self._arm(*each) for each in trios]
        last = [len(arm.weights) - first for arm, _, first in trios]
        today = [
            {name: each[at : at + 1] if at else each for name, each in arm.items()}
            for arm, at in zip(arms, last, strict=True)
        ]
        table = {name: graph.stack([arm[name] for arm in today]) for name in today[0]}
        if len(arms) == 1:  # an only arm has the gap 0
            gap = when_chosen = self.kernel.ones * 0.0
        else:
            upper = self._only(table["upper"], -np.inf)
            gap = when_chosen = self._eligible_gaps(self._gaps(table["lower"], upper))
            if rule.compares == "history":
                # The state of every arm at each step, from the first.
                later = pulled[rule.first_step :].cumsum(axis=0)
                states = np.vstack([np.zeros_like(later, shape=(1, len(arms))), later])
                when_chosen = self._gaps_at_best_step(arms, states)
        return self._picked({**table, "gap": gap}, when_chosen)

    def _decide_shared(self, shared: SharedTable) -> _Decided:
        values = self.kernel.values(self.rule.inner_kernel) if len(shared.support) else self.prior
        if not self.means_alone:
            table = self._shared_tables(shared, values)
            return self._picked(table, table["gap"])
        if not len(shared.support):
            return self._pick("ArgMax", self.graph.stack([self.prior] * len(shared.alike)))
        return self._pick("ArgMax", self.graph.real(shared.weights) @ values + self.prior)

    def _picked(self, table: dict[str, Value], gap_when_chosen: Value) -> _Decided:
        if self.rule.compares in ("mean", "upper"):
            decided = self._pick("ArgMax", table[self.rule.compares])
        else:
            decided = self._pick("ArgMin", gap_when_chosen)
        if not self.bounds:
            return decided
        place = decided.arm.node("Reshape", [1, -1])
        own = gap_when_chosen.node("GatherElements", place, axis=0)
        believed = {**table, "own": own, "certificate": own.node("Max", 0.0).row}
        return replace(decided, believed=believed)

    def _pick(self, operator: str, scores: Value) -> _Decided:
        scores = self._only(scores, np.inf if operator == "ArgMin" else -np.inf)
        return _Decided(scores.node(operator, axis=0, keepdims=0, select_last_index=0), scores)

    def _only(self, table: Value, otherwise: float) -> Value:
        return self.eligible.where(table, otherwise) if self.masked else table

    def _eligible_gaps(self, gap: Value) -> Value:
        """Return gaps over eligible rivals; an only arm has 0, others NaN."""
        return self._only(self.alone.where(0.0, gap), np.nan) if self.masked else gap

    def _values_by_arm(self) -> list[Value]:
        """Kernel values at each arm's support, computed at once."""
        arms = self.rule.arms
        if not len(self.kernel.support):
            return [self.prior for _ in arms]
        values = self.kernel.values(self.rule.inner_kernel)
        if self.rule.common or sum(len(table.support) > 0 for table in arms) == 1:
            return [values for _ in arms]
        ends = np.cumsum([len(table.support) for table in arms]).tolist()
        return [
            values[end - len(table.support) : end] for end, table in zip(ends, arms, strict=True)
        ]

    def _mean(self, table: ArmTable, values: Value) -> Value:
        if not len(table.weights):
            return self.prior
        return self.graph.real(table.weights[None]) @ values + self.prior

    def _arm(self, table: ArmTable, values: Value, first: int) -> dict[str, Value]:
        """Return an arm's mean, std, lower and upper after ``first`` observations, ..., all."""
        graph, n, diagonal = self.graph, len(table.weights), self._diagonal()
        mean, variance = [self.prior], [diagonal]
        if n:
            v = self._solved(table.factor, n, values)
            if first:
                head = v if first == n else v[0:first]
                known = graph.real(table.innovations[None, :first]) @ head
                explained = head.over_rows("ReduceSumSquare")
                mean, variance = [known + self.prior], [diagonal - explained]
            if first < n:
                tail = v[first:n] if first else v
                mean.append(tail * table.innovations[first:, None])
                variance.append(-(tail * tail))
        if len(table.added):  # models without a history
            added = self._solved(table.added, n, values).over_rows("ReduceSumSquare")
            variance = [variance[0] + added]
        means, variances = (
            terms[0] if len(terms) == 1 else graph.stack(terms).node("CumSum", 0)
            for terms in (mean, variance)
        )
        return _interval(means, variances, table.reach[first:, None])

    def _shared_tables(self, table: SharedTable, values: Value) -> dict[str, Value]:
        # One factor for all arms: v_a = L⁻¹(s_a∘k), s_a says how alike arm a is to those observed.
        graph, n, diagonal = self.graph, len(table.support), self._diagonal()
        means, variances = [self.prior] * len(table.alike), [diagonal] * len(table.alike)
        solutions = []
        for row in table.alike if n else ():
            own = values * row[table.whose][:, None]
            solutions.append(self._solved(table.factor, n, own))
        if n:
            innovations = graph.real(table.innovations[None])
            known = [innovations @ v for v in solutions]
            means = [each + self.prior for each in known]
            explained = [v.over_rows("ReduceSumSquare") for v in solutions]
            variances = [diagonal - each for each in explained]
        found = _interval(graph.stack(means), graph.stack(variances), table.reach)
        return {**found, "gap": self._shared_gaps(table, solutions, means)}

    def _shared_gaps(self, table: SharedTable, solutions: list[Value], means: list[Value]) -> Value:
        """Return the upper bound of the best other lead over each arm."""
        diagonal = self._diagonal()
        if len(means) == 1:  # an only arm has the gap 0
            return diagonal * 0.0
        leads: list[list[Value]] = [[] for _ in means]
        for a, b in combinations(range(len(means)), 2):
            variance = diagonal * (2.0 - 2.0 * table.among[a, b])
            if solutions:
                variance -= (solutions[a] - solutions[b]).over_rows("ReduceSumSquare")
            half = _root(variance) * table.reach
            for own, other in ((a, b), (b, a)):
                highest = means[other] - means[own] + half
                if self.masked:
                    highest = self.eligible[other : other + 1].where(highest, -np.inf)
                leads[own].append(highest)
        highest_leads = [self.graph.stack(each).over_rows("ReduceMax") for each in leads]
        return self._eligible_gaps(self.graph.stack(highest_leads))

    def _gaps(self, lower: Value, upper: Value) -> Value:
        """Every arm's gap, of at least two."""
        both = upper.node("TopK", [2], outputs=2, axis=0)
        highest, second = both[0:1], both[1:2]
        # Of two arms with the same upper either will do.
        return upper.equals(highest).where(second, highest) - lower

    def _gaps_at_best_step(self, arms: list[dict[str, Value]], states: IntArray) -> Value:
        """Every arm's gap at the step whose smallest is smallest."""
        graph, smallest = self.graph, self._smallest_gaps(arms, states)
        step = smallest.node("ArgMin", axis=0, keepdims=1, select_last_index=0)
        lower, upper = [], []
        for arm, own in zip(arms, states.T, strict=True):
            state = graph.constant(own).node("Gather", step, axis=0)
            lower.append(arm["lower"].node("GatherElements", state, axis=0))
            upper.append(arm["upper"].node("GatherElements", state, axis=0))
        return self._gaps(upper=graph.stack(upper), lower=graph.stack(lower))

    def _smallest_gaps(self, arms: list[dict[str, Value]], states: IntArray) -> Value:
        # With h the arm of highest upper U1, U2 the second: min(U1 − max lower, U2 − lower_h).
        bounds = (  # one by one, so that few are held
            [arm[name].node("Gather", own, axis=0) for name in ("lower", "upper")]
            for arm, own in zip(arms, states.T, strict=True)
        )
        lower, upper = next(bounds)
        highest, second, lowest, lower_of_highest = upper, None, lower, lower
        for lower, upper in bounds:
            beaten = highest.node("Min", upper)
            second = beaten if second is None else second.node("Max", beaten)
            lower_of_highest = (upper > highest).where(lower, lower_of_highest)
            highest, lowest = highest.node("Max", upper), lowest.node("Max", lower)
        assert second is not None  # there are two arms or more
        return (highest - lowest).node("Min", second - lower_of_highest)

    def _with_fallback(self, fallback: Fallback, decided: _Decided) -> tuple[_Decided, Value]:
        graph = self.graph
        falls = outside = self._outside(fallback)
        reason = graph.constant([[Status.RECOMMENDED]])
        if fallback.tolerance is not None:  # not Greater: NaN certifies nothing
            too_large = ~(decided.believed["own"] <= fallback.tolerance)
            reason = too_large.where([[Status.BOUND_TOO_LARGE]], reason)
            falls = outside | too_large
        status = outside.where([[Status.OUTSIDE]], reason)
        safe = slice(fallback.column, fallback.column + 1)
        if self.masked:
            can = self.eligible[safe]
            status = (falls & ~can).where([[Status.NO_FALLBACK]], status)
            falls = falls & can
        falls_row = falls.row
        arm = falls_row.where(fallback.column, decided.arm)
        # The scores need not be known.
        answered = replace(decided, arm=arm, scores=falls.where(0.0, decided.scores))
        if not decided.believed:
            return answered, status.row
        gap = decided.believed["gap"][safe].row
        certificate = falls_row.where(gap.node("Max", 0.0), decided.believed["certificate"])
        unknown = falls_row.where(gap, certificate).node("IsNaN")
        known = {**decided.believed, "certificate": unknown.where(np.inf, certificate)}
        return replace(answered, believed=known), status.row

    def _outside(self, fallback: Fallback) -> Value:
        graph, contexts = self.graph, self.kernel.contexts
        low, high = seen_ranges(fallback, self.rule, graph.dtype)
        beyond = (contexts < low[:, None]) | (contexts > high[:, None])
        return beyond.cast(graph.dtype).over_rows("ReduceMax").cast(np.bool_)

    def _solved(self, packed: FloatArray, n: int, values: Value) -> Value:
        """Return L⁻¹k from the rows of L."""
        graph, factor = self.graph, np.zeros((n, n))
        factor[np.tril_indices(n)] = packed
        inverse, _ = dtrtri(factor, lower=1)  # diagonals are positive
        inverse = np.tril(inverse)
        products = []
        for start, end in _panels(n):
            left = values if end == n else values[0:end]
            products.append(graph.real(inverse[start:end, :end]) @ left)
        return graph.stack(products)

    def _diagonal(self) -> Value:
        return self.kernel.diagonal(self.rule.inner_kernel)


def _root(variance: Value) -> Value:
    return variance.node("Max", 0.0).node("Sqrt")


def _interval(mean: Value, variance: Value, reach: FloatArray | float) -> dict[str, Value]:
    std = _root(variance)
    half = std * reach
    return {"mean": mean, "std": std, "lower": mean - half, "upper": mean + half}


def _panels(n: int) -> list[tuple[int, int]]:
    """Stretches of rows, without the zeros right of the last diagonal entry."""
    return [(start, min(start + _PANEL, n)) for start in range(0, n, _PANEL)]
