"""Writing the three files of an export."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextgap.base import checks
from contextgap.export.c.cost import Operations, recommend_cost
from contextgap.export.c.data import numbers_in_tables, other_bytes, stack_bytes
from contextgap.export.c.header import header
from contextgap.export.c.kernels import kernel_source
from contextgap.export.c.literals import Real
from contextgap.export.c.precision import precision
from contextgap.export.c.selftest import self_test as self_test_text
from contextgap.export.c.shape import shape_of
from contextgap.export.c.source import EXPORT_ID, source
from contextgap.export.reference import comparison_contexts, fallback_arm, reference
from contextgap.export.rule import decision_rule
from contextgap.policy import Policy
from contextgap.policy.state import read_truth

HEADER, SOURCE, SELF_TEST = "contextgap_policy.h", "contextgap_policy.c", "contextgap_selftest.c"


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
    operations
        What one call of ``contextgap_recommend`` computes.
    fallback
        Index of the arm that is recommended where nothing can be computed.
    tolerance
        How far means and gaps may be from Python's, and how close the scores of two arms whose
        order rounding may decide.
    near_ties
        At how many contexts of the self-test two arms are as close as that. Many of them in
        ``float`` mean that the policy needs ``double``, or a larger ridge.
    """

    header: Path
    source: Path
    self_test: Path
    rom_bytes: int
    ram_bytes: int
    operations: Operations
    fallback: int
    tolerance: float
    near_ties: int


def write_c(
    policy: Policy,
    directory: str | os.PathLike[str],
    *,
    float32: bool = False,
    self_test: int = 200,
    contexts: Any = None,
    certificates: bool = False,
) -> CExport:
    """Write a policy as C99: a header, a source and a program that tests them on the target.

    Raises ``ExportError`` for what cannot be expressed: rules that draw at random, kernels other
    than the library's own, numbers beyond the range of ``float``.

    Parameters
    ----------
    policy
        The frozen decision rule.
    directory
        Where to write; made if missing. Files of an earlier export are replaced.
    float32
        Compute in ``float``; the header says what that costs in precision.
    self_test
        At how many contexts the self-test compares with Python.
    contexts
        Contexts to compare at instead: those the policy will meet.
    certificates
        Whether a policy that deploys the highest mean shall explain itself by widths, gaps and
        certificates. They take n²/2 numbers for an arm's n observations; without them it needs
        its observed contexts and n numbers. Other rules need widths anyway and always have them.
    """
    checks.instance("policy", policy, Policy, "learner.freeze()")
    count = checks.whole("self_test", self_test, least=1)
    for name, value in (("float32", float32), ("certificates", certificates)):
        read_truth(name, value)
    from contextgap import __version__

    rule = decision_rule(policy)
    real, shape = Real(float32), shape_of(rule, certificates)
    kernel = kernel_source(rule.kernel, rule.dimension, real, with_diagonal=shape.form.has_widths)
    rows = real.rounded(comparison_contexts(policy, rule, count, contexts), "contexts")
    if not len(rows):
        raise ValueError("contexts must hold at least one context to compare at, got none")
    expected = reference(policy, rule, rows.astype("float64"))
    rounding = precision(rule, shape, expected, real)
    operations = recommend_cost(shape, kernel.value, kernel.diagonal)
    number_bytes = real.bytes * numbers_in_tables(shape, kernel.constants)
    rom_bytes = number_bytes + other_bytes(rule, shape)
    ram_bytes = stack_bytes(shape, real)
    fallback = fallback_arm(rule)
    texts = {
        SOURCE: source(rule, shape, kernel, real, __version__),
        SELF_TEST: self_test_text(shape, expected, rounding, real, __version__),
        HEADER: header(
            rule,
            shape,
            real,
            version=__version__,
            operations=operations,
            number_bytes=number_bytes,
            rom_bytes=rom_bytes,
            ram_bytes=ram_bytes,
            fallback=fallback,
            precision=rounding,
        ),
    }
    written = _write(Path(directory), texts)
    return CExport(
        header=written[HEADER],
        source=written[SOURCE],
        self_test=written[SELF_TEST],
        rom_bytes=rom_bytes,
        ram_bytes=ram_bytes,
        operations=operations,
        fallback=fallback,
        tolerance=rounding.tolerance,
        near_ties=int((expected.margin <= rounding.tolerance).sum()),
    )


def _write(directory: Path, texts: dict[str, str]) -> dict[str, Path]:
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
    return {name: directory / name for name in texts}
