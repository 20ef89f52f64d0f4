"""Write a frozen policy as an ONNX graph, and run one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.files import FileFormatError, whole_file
from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.base.names import study_import
from contextgap.export.onnx.decision import ELIGIBLE, emit, inverse_size
from contextgap.export.onnx.graph import GraphBuilder
from contextgap.export.parity import comparison_contexts, warn_of_rounding
from contextgap.export.rule import (
    DecisionRule,
    ExportError,
    check_kernel,
    check_masks,
    decision_rule,
    read_rows,
)
from contextgap.methods.recommenders import HighestMean, SmallestGapInHistory
from contextgap.policy import Policy
from contextgap.policy.state import read_truth
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.eligible import Mask, read_eligible
from contextgap.tables.schema import TableSchema

# The oldest that says which of equal scores ArgMin and ArgMax take (select_last_index). All else
# that is used here exists since 11, the first with CumSum and with Equal of float64.
OLDEST_OPSET = 12
PREFIX = "contextgap."  # of the keys of metadata
# Protocol buffers, of which an ONNX file is one, end here.
_LARGEST_FILE = 2**31 - 1
_COMPARED = 200  # contexts that are rounded, to see whether decisions change
# Numbers in the largest value of one run: 2^18 doubles are 2 MB, which caches still hold.
_BLOCK = 2**18


@dataclass(frozen=True)
class OnnxFile:
    """A graph that was written.

    Parameters
    ----------
    path
        Where.
    size
        Bytes.
    opset
        Version of the operators it uses.
    outputs
        Names of what it computes.
    """

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
    """Write a policy as an ONNX graph from ``contexts`` (batch, d) to ``arm`` (batch,), an index.

    The metadata holds the labels that the indices stand for, the names of the columns, the
    recommender, the kernel, and with which probability all certificates hold at once.

    A table with typed columns has one number per column, in the table's order: a number, days
    since 1970, the code of a category's level, NaN if missing. The metadata then also holds
    ``table``, with each column's kind and levels; a level's code is its place, from 0. Any other
    code is a level never observed. ``GraphPolicy`` reads raw tables.

    A row that holds NaN, where no value may be missing, or infinity, or numbers so large that means
    or bounds overflow to NaN, gets the arm −1, NaN for everything believed and an infinite
    certificate.

    A policy with a fallback has one more output, ``status`` (batch,): 0 where the arm is the
    recommended one, and otherwise why it is the fallback, as ``policy.status`` says; −1 where there
    is no answer. The metadata holds ``fallback``.

    Intervals need a triangular matrix for each arm, some n²/2 numbers for n observations; a policy
    that deploys by ``HighestMean`` is written without, unless ``explain`` asks for them or a
    fallback has a tolerance.
    ``SmallestGapInHistory`` holds every arm's bounds after each of its observations, and some
    tables of (steps looked back on) × batch numbers, while it runs; run it in blocks of contexts,
    as ``GraphPolicy`` does.

    Parameters
    ----------
    policy
        What ``Learner.freeze`` returned.
    path
        Where to write; an older file is replaced once the new one is complete.
    float32
        Compute in single precision: half the size, for hardware without doubles. std² is a
        difference, of which some 1e-6·k(x, x) is rounding, so a std below about 1e-3·√k(x, x) is
        no different from zero; the smaller the ridge, the larger the errors of means.
    explain
        Also put out ``mean``, ``std``, ``lower``, ``upper``, ``gap`` (batch, arms) after the last
        step, and ``certificate`` (batch,), the regret bound of the arm answered.
    eligible
        Take a second input, ``eligible`` (batch, arms), of truth values: which arms may be chosen.
        Everything is then as if a row had no other arms, but that means and bounds of all arms are
        put out; gaps of arms that are not eligible are NaN. A row without eligible arms gets no
        answer. Rules that look back cannot be written so.
    opset
        Version of the operators, at least 12.

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
    _check_size(rule, 4 if float32 else 8, explain)
    graph = GraphBuilder(np.float32 if float32 else np.float64, opset)
    emit(graph, rule, explain, eligible)
    if float32:
        warn_of_rounding(policy, rule, comparison_contexts(policy, rule, _COMPARED, None))
    target = Path(path)
    content = _model(onnx.helper, graph, rule, eligible).SerializeToString()
    with whole_file(target) as file:
        file.write(content)
    return OnnxFile(target, len(content), opset, tuple(graph.outputs))


def _check_size(rule: DecisionRule, itemsize: int, explain: bool) -> None:
    if isinstance(rule.recommender, HighestMean) and not explain and rule.tolerance is None:
        return
    size = sum(inverse_size(count) for count in _factors(rule)) * itemsize
    if size > _LARGEST_FILE:
        raise ExportError(
            f"the inverse factors take {size / 2**30:.1f} GiB, more than the 2 GiB an ONNX file "
            "can have; explore fewer steps, deploy by HighestMean or export with float32=True"
        )


def _model(helper: Any, graph: GraphBuilder, rule: DecisionRule, eligible: bool) -> Any:
    given = [("contexts", graph.dtype, rule.inputs)]
    given += [(ELIGIBLE, np.dtype(np.bool_), len(rule.labels))] if eligible else []
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
        # The oldest format that goes with the operators, so that old runtimes open the file.
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="contextgap",
        producer_version=described[f"{PREFIX}version"],
    )
    helper.set_model_props(model, described)
    return model


def _metadata(rule: DecisionRule) -> dict[str, str]:
    """What a graph says about itself: strings by key, JSON where structured."""
    try:
        labels = [encode_label(label) for label in rule.labels]
    except TypeError as error:
        raise ExportError(str(error)) from None
    structured: dict[str, Any] = {
        "labels": labels,
        "columns": None if rule.columns is None else list(rule.columns),
        "dimension": rule.inputs,
        "recommender": rule.recommender.describe(),
        "kernel": rule.kernel.describe(),
        "probability": rule.probability,
        "numbers_per_context": _numbers_per_context(rule),
    }
    if rule.table is not None:
        structured["table"] = rule.table.describe()
    if rule.fallback is not None:
        structured["fallback"] = rule.fallback.describe()
    texts = {f"{PREFIX}{key}": json.dumps(value) for key, value in structured.items()}
    return {**texts, f"{PREFIX}version": version("contextgap")}


def _numbers_per_context(rule: DecisionRule) -> int:
    """Numbers per context of the graph's largest value: kernel values, or bounds at every step."""
    observations = sum(_factors(rule))
    looks_back = isinstance(rule.recommender, SmallestGapInHistory)
    steps = len(rule.pulls) + 1 - rule.first_step if looks_back else 1
    return max(observations, steps, len(rule.labels))


def _factors(rule: DecisionRule) -> list[int]:
    """How many points each factor is of: one if arms share, one more if points are common."""
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
        self.takes_arms = ELIGIBLE in [each.name for each in self._session.get_inputs()]
        single = self._session.get_inputs()[0].type == "tensor(float)"
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self._rows = max(1, _BLOCK // known["numbers_per_context"])

    def recommend(self, contexts: Any, *, arms: Any = None) -> NDArray[np.int64]:
        """Return the index of the arm to deploy at each context; −1 where there is no answer.

        Parameters
        ----------
        contexts
            Shape (n, d), however many, or a DataFrame with the columns by name. Where columns have
            types, an array of numbers holds what the graph takes, codes in place of levels; a
            DataFrame, a mapping or rows of cells hold raw levels and dates.
        arms
            The eligible arms, all by default, as for ``Policy.recommend``; the file must have been
            written with ``eligible=True``. A boolean array may have rows without any, which get no
            answer.

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
        given = self._given(contexts, arms)
        blocks = [self._session.run(wanted, block) for block in self._blocks(given)]
        return {name: np.concatenate(parts) for name, *parts in zip(wanted, *blocks, strict=True)}

    def _given(self, contexts: Any, arms: Any) -> dict[str, NDArray[Any]]:
        """What the graph takes, by name."""
        rows = self._read(contexts)
        if self.takes_arms:
            return {"contexts": rows, ELIGIBLE: self._mask(arms, len(rows))}
        if arms is not None:
            raise ValueError("the file takes no eligible arms; write it with eligible=True")
        return {"contexts": rows}

    def _mask(self, arms: Any, rows: int) -> Mask:
        everything = (rows, len(self.labels))
        if isinstance(arms, np.ndarray) and arms.dtype == np.bool_ and arms.shape == everything:
            return arms  # not read: what leaves no arm is the graph's to answer
        mask = read_eligible(arms, self.labels, rows, single=False)
        return np.ones(everything, dtype=bool) if mask is None else mask

    def _blocks(self, given: dict[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
        for first in range(0, max(1, len(given["contexts"])), self._rows):
            block = slice(first, first + self._rows)
            yield {name: np.ascontiguousarray(values[block]) for name, values in given.items()}

    def _read(self, contexts: Any) -> NDArray[Any]:
        numbers = isinstance(contexts, np.ndarray) and contexts.dtype.kind in "fiub"
        if self.table is None:
            # Not the schema's own reading: what is not finite is the graph's to answer.
            _, values = ContextSchema(self.dimension, self.columns).in_order(contexts)
        elif numbers:
            values = contexts
        else:
            values = read_rows(self.table, contexts)
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and answered so
            rows = np.ascontiguousarray(values, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ValueError(
                f"contexts must have shape (n, {self.dimension}), got {np.shape(values)}"
            )
        return rows
