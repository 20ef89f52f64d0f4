"""Write a frozen policy as C99, after measuring how far its answers may be from Python's."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtpsv, stpsv

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.export.c.layout import Form, Layout
from contextgap.export.c.literals import (
    DEFAULT_PREFIX,
    FileNames,
    Real,
    check_prefix,
    static_file,
)
from contextgap.export.c.text import EXPORT_ID, header, tables
from contextgap.export.c.text import self_test as self_test_text
from contextgap.export.parity import (
    Answers,
    answers_of,
    comparison_contexts,
    fallback_arm,
    is_near_tie,
    warn_of_rounding,
)
from contextgap.export.rule import (
    ArmTable,
    DecisionRule,
    ExportError,
    check_masks,
    decision_rule,
    seen_by_kernels,
)
from contextgap.insight.watch import Watch
from contextgap.policy import Policy
from contextgap.policy.state import read_truth

_MOST = 200  # contexts to emulate at
_MARGIN = 16  # rounding in C need not go as in numpy


@dataclass(frozen=True)
class CExport:
    """What was written, and what it needs.

    Parameters
    ----------
    header, source, self_test
        The files.
    rom_bytes
        Constants, with 8-byte pointers; code comes on top.
    ram_bytes
        Arrays on the stack during a call.
    default_arm
        Index of the arm that is answered where nothing can be computed: the policy's fallback, or,
        without one, the arm of the highest mean over all observed contexts.
    tolerance
        How far means and gaps may be from Python's, and how close the scores of two arms whose
        order rounding may decide.
    near_ties
        At how many contexts of the self-test two arms, or a bound and the fallback's tolerance,
        are as close as that. Many of them in ``float`` mean that the policy needs ``double``, or a
        larger ridge.

    See Also
    --------
    Policy.to_c : Returns one.

    Examples
    --------
    >>> export = policy.to_c("flight")
    >>> export.rom_bytes > 0, export.default_arm in (0, 1)
    (True, True)
    """

    header: Path
    source: Path
    self_test: Path
    rom_bytes: int
    ram_bytes: int
    default_arm: int
    tolerance: float
    near_ties: int

    @property
    def fallback(self) -> int:
        """The default arm, by its earlier name, also where there is no fallback."""
        warnings.warn(
            "CExport.fallback is deprecated; default_arm is the same",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.default_arm


def write_c(
    policy: Policy,
    directory: str | os.PathLike[str],
    *,
    float32: bool = False,
    self_test: int = 200,
    contexts: Any = None,
    certificates: bool = False,
    eligible: bool = False,
    prefix: str = DEFAULT_PREFIX,
    watch: Watch | None = None,
) -> CExport:
    """Write a policy as C99, as ``Policy.to_c`` does, which says what the parameters mean.

    The self-test compares with Python at ``self_test`` contexts, if no ``contexts`` are given.

    See Also
    --------
    Policy.to_c : The same as a method.

    Examples
    --------
    >>> from contextgap.export.c import write_c
    >>> export = write_c(policy, "flight", prefix="sensor")
    >>> export.source.name
    'sensor_policy.c'
    """
    checks.instance("policy", policy, Policy, "learner.freeze()")
    count = checks.whole("self_test", self_test, least=1)
    truths = {"float32": float32, "certificates": certificates, "eligible": eligible}
    for name, value in truths.items():
        read_truth(name, value)
    names = FileNames.of(check_prefix(prefix))
    rule, real = decision_rule(policy), Real(float32)
    layout = Layout.of(policy, real, certificates=certificates)
    if eligible:
        check_masks(rule)
    if watch is not None:
        checks.instance("watch", watch, Watch, "policy.watch()")
        if watch.policy is not policy or watch.rows:
            raise ValueError(f"watch must be of this policy and have seen nothing, got {watch!r}")
        points, columns = len(watch.scores.points), len(watch.scores.columns)
        layout = replace(layout, watch_points=points, watch_columns=columns)
    source = f"{tables(rule, layout, prefix, watch)}\n{static_file('runtime.c', prefix)}"
    source += "" if watch is None else static_file("watch.c", prefix)
    made = comparison_contexts(policy, rule, count, contexts)
    rows = real.rounded(made, "contexts", missing=rule.table is not None)
    if not len(rows):
        raise ValueError("contexts must hold at least one context to compare at, got none")
    if float32:
        warn_of_rounding(policy, rule, made)
    expected = answers_of(policy, rule, rows.astype("float64"))
    tolerance, sentence = _precision(rule, layout, expected)
    slack = np.full(len(rows), tolerance)
    default_arm, folder = fallback_arm(policy, rule), Path(directory)
    texts = {
        names.source: source,
        names.self_test: self_test_text(rule, layout, expected, tolerance, prefix),
        names.header: header(rule, layout, default_arm, sentence, prefix, eligible, watch),
    }
    _write(folder, texts)
    return CExport(
        header=folder / names.header,
        source=folder / names.source,
        self_test=folder / names.self_test,
        rom_bytes=layout.rom_bytes,
        ram_bytes=layout.ram_bytes,
        default_arm=default_arm,
        tolerance=tolerance,
        near_ties=int(is_near_tie(rule.fallback, expected, slack).sum()),
    )


def _precision(rule: DecisionRule, layout: Layout, expected: Answers) -> tuple[float, str]:
    """Return the deviation of means, gaps or scores up to which it is rounding, and it in words."""
    # The exported formulas are emulated in their precision and compared with Python's answers; only
    # kernel values are computed in double and then rounded.
    real, contexts = layout.real, seen_by_kernels(rule.table, expected.contexts[:_MOST])
    mean, half = np.zeros((2, len(contexts), layout.arms))
    for i, arm in enumerate(_tables(rule)):
        shift, variance = _emulated(rule, arm, layout, contexts)
        mean[:, i] = rule.prior + shift
        half[:, i] = arm.reach[-1] * np.sqrt(np.maximum(variance, 0))
    mean_error = float(np.abs(mean - expected.mean[:_MOST]).max())
    half_error, widths = 0.0, ""
    if layout.form.has_widths:
        half_error = float(np.abs(half - expected.half_width[:_MOST]).max())
        widths = f" and half widths by at most {half_error:.1e}"
    if not np.isfinite(mean_error + half_error):
        raise ExportError(
            f"the range of {real.name} is too small for this policy"
            + ("; export it with float32=False" if real.float32 else "")
        )
    size = float((np.abs(expected.mean) + expected.half_width).max()) or 1.0
    least = (1e-5 if real.float32 else 1e-9) * size
    tolerance = max(least, _MARGIN * (mean_error + half_error))
    return tolerance, (
        f"Computing in {real.name} moves means by at most {mean_error:.1e}{widths} at "
        f"{len(contexts)} contexts of the self-test, emulated; two arms whose scores differ by "
        f"less than {tolerance:.1e} are a near tie."
    )


def _tables(rule: DecisionRule) -> list[ArmTable]:
    """The arms' tables; of arms that share, each arm's own with the factor scaled by s."""
    shared = rule.shared
    if shared is None:
        return list(rule.arms)
    rows = np.repeat(np.arange(len(shared.whose)), np.arange(1, len(shared.whose) + 1))
    return [
        ArmTable(
            support=shared.support,
            weights=weights,
            factor=shared.factor / alike[shared.whose][rows],
            innovations=shared.innovations,
            reach=np.array([shared.reach]),
        )
        for weights, alike in zip(shared.weights, shared.alike, strict=True)
    ]


def _emulated(
    rule: DecisionRule, arm: ArmTable, layout: Layout, contexts: FloatArray
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean − prior and std² as the exported code computes them."""
    real = layout.real
    support = real.rounded(rule.warped(arm.support), "support").astype(np.float64)
    kernel, contexts = rule.inner_kernel, rule.warped(contexts)
    values = real.rounded(kernel(support, contexts), "the kernel's values")
    variance = real.rounded(kernel.diagonal(contexts), "the kernel's values")
    shift = real.rounded(arm.weights, "weights") @ values
    if layout.form is Form.MEANS or not len(arm.weights):
        return shift, variance
    solve = stpsv if real.float32 else dtpsv
    factor = real.rounded(arm.factor, "factor")
    # Rows of L are columns of its packed transpose; the transpose of that is L again.
    v = np.array([solve(len(k), factor, k, trans=1) for k in values.T], dtype=real.dtype).T
    if not layout.form.mean_from_weights:
        shift = real.rounded(arm.innovations, "innovations") @ v
    variance = variance - np.einsum("ij,ij->j", v, v)
    if len(arm.added):
        added = real.rounded(arm.added, "factor")
        u = np.array([solve(len(k), added, k, trans=1) for k in values.T], dtype=real.dtype).T
        variance = variance + np.einsum("ij,ij->j", u, u)
    return shift, variance


def _write(directory: Path, texts: dict[str, str]) -> None:
    """Write all files or none; files of different exports refuse to be compiled together."""
    digest = hashlib.sha256("".join(texts.values()).encode("utf-8")).hexdigest()[:8]
    if directory.is_file():
        raise NotADirectoryError(f"{directory} is a file; name a folder to write three files to")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".contextgap-") as unfinished:
        for name, text in texts.items():
            whole = text.replace(EXPORT_ID, digest)
            (Path(unfinished) / name).write_text(whole, encoding="utf-8", newline="\n")
        for name in texts:
            os.replace(Path(unfinished) / name, directory / name)
