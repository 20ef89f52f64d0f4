"""A frozen policy as C99: written with no need but ``math.h``, compiled here, and compared."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtpsv, stpsv

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Mask
from contextgap.export.c.text import (
    DEFAULT_PREFIX,
    EXPORT_ID,
    LEVEL_UNKNOWN,
    POINTER,
    STATUSES,
    FileNames,
    Real,
    check_prefix,
    column_names,
    header,
    label_text,
    level_bytes,
    static_file,
    string_bytes,
    tables,
)
from contextgap.export.c.text import self_test as self_test_text
from contextgap.export.rule import (
    Answers,
    ArmTable,
    DecisionRule,
    ExportError,
    answers_of,
    check_masks,
    comparison_contexts,
    decision_rule,
    fallback_arm,
    is_near_tie,
    seen_by_kernels,
    warn_of_rounding,
)
from contextgap.insight.betting import BINS
from contextgap.insight.watch import Watch
from contextgap.insight.watch_baseline import STATISTICS
from contextgap.kernels import Kernel, Linear, Periodic, Product, Scaled, Sum, Warped
from contextgap.kernels.stationary import Stationary
from contextgap.methods.recommenders import HighestMean, Recommender, SmallestGapInHistory
from contextgap.policy import Policy
from contextgap.policy.state import Fallback, Status, read_truth
from contextgap.tables.columns import TableSchema


class Form(Enum):
    MEANS = "means"
    MEANS_EXPLAINED = "means, and widths when asked to explain"
    LAST_STEP = "means and widths after the last step"
    LOOK_BACK = "means and widths after every step"

    @classmethod
    def of(
        cls,
        recommender: Recommender,
        certificates: bool = False,
        fallback: Fallback | None = None,
    ) -> Form:
        """Return the form for a rule."""
        # Tolerances are compared with certificates.
        compares = fallback is not None and fallback.tolerance is not None
        if isinstance(recommender, HighestMean) and not compares:
            return cls.MEANS_EXPLAINED if certificates else cls.MEANS
        return cls.LOOK_BACK if isinstance(recommender, SmallestGapInHistory) else cls.LAST_STEP

    @property
    def looks_back(self) -> bool:
        return self is Form.LOOK_BACK

    @property
    def has_widths(self) -> bool:
        return self is not Form.MEANS

    @property
    def mean_from_weights(self) -> bool:
        # Where v = L⁻¹k is known, means come from it: nothing cancels if ridges are small.
        return self in (Form.MEANS, Form.MEANS_EXPLAINED)


@dataclass(frozen=True)
class Layout:
    form: Form
    real: Real
    dimension: int  # numbers that kernels see
    sizes: tuple[int, ...]  # observations of each arm, the same for arms that share
    kernel_constants: int
    text_bytes: int
    columns: int = 0  # arms observed, if arms share
    table: TableSchema | None = None
    fallback: Fallback | None = None  # needs the range of each number
    watch_points: int = 0  # to measure distances to
    watch_columns: int = 0  # bet on
    warped: bool = False
    common: bool = False  # whether arms share inducing points only

    @classmethod
    def of(cls, policy: Policy, real: Real, *, certificates: bool = False) -> Layout:
        if policy.dimension is None:
            raise ValueError("a policy that never saw a context has no size; tell it something")
        words = *map(label_text, policy.arms), *column_names(policy.columns, policy.dimension)
        return cls(
            form=Form.of(policy.method.recommender, certificates, policy.fallback),
            real=real,
            dimension=policy.dimension,
            sizes=tuple(policy.state.model.support_sizes(policy.state.active)),
            kernel_constants=_kernel_constants(policy.kernel, policy.dimension),
            text_bytes=sum(string_bytes(word) + POINTER for word in words),
            columns=policy.state.model.n_arms if policy.state.model.shares else 0,
            table=policy.state.schema.table,
            fallback=policy.fallback,
            common=policy.state.model.common_support,
            warped=isinstance(policy.kernel, Warped),
        )

    def holding(self, recommender: Recommender, sizes: Sequence[int]) -> Layout:
        form = Form.of(recommender, fallback=self.fallback)
        return replace(self, form=form, sizes=tuple(sizes), columns=0, common=False)

    @property
    def arms(self) -> int:
        return len(self.sizes)

    @property
    def points(self) -> int:
        return self.sizes[0] if self.columns or self.common else sum(self.sizes)

    @property
    def solved_entries(self) -> int:
        """Entries of v = L⁻¹k kept at once."""
        return max(1, self.points if self.form.looks_back else max(self.sizes))

    @property
    def index_type(self) -> tuple[str, int]:
        """The smallest type for arms, and its bytes."""
        most = max(self.arms, self.columns)
        if most <= 2**7:
            return "signed char", 1
        return ("short", 2) if most <= 2**15 else ("int", 4)

    @property
    def number_bytes(self) -> int:
        weights = self.form.mean_from_weights
        by_arm = self.common or (self.columns and weights)
        tables = [self.points * self.dimension, self.points * (self.arms if by_arm else 1)]
        if self.form.has_widths:  # factors, half widths over standard deviations, correlations
            triangles = [size * (size + 1) // 2 for size in self.sizes]
            if self.columns:
                tables += [triangles[0], 1, self.arms * self.columns, self.arms * self.arms]
            else:
                tables += [triangles[0], sum(triangles)] if self.common else [sum(triangles)]
                tables.append(self.arms + (self.points if self.form.looks_back else 0))
        around = (self.table is not None) + (self.fallback is not None)  # two tables for each
        # C has no empty arrays.
        count = sum(max(1, size) for size in tables) + 2 * around * self.dimension
        count += self.watch_points * (self.dimension + 1)
        return self.real.bytes * (count + self.kernel_constants)

    @property
    def rom_bytes(self) -> int:
        total = self.number_bytes + self.text_bytes
        if self.watch_points:
            count = len(STATISTICS) + self.watch_columns
            total += 8 * (self.arms + count * (BINS - 1)) + 4 * count * BINS
            total += 2 * self.watch_columns
        if self.table is not None:
            total += 3 * self.dimension + level_bytes(self.table)
        total += POINTER * (1 if self.columns or self.common else self.arms)
        look_back = self.form.looks_back
        if look_back:
            total += POINTER * self.arms
        if look_back or (self.columns and self.form.has_widths):
            total += max(1, self.points) * self.index_type[1]
        return total

    @property
    def ram_bytes(self) -> int:
        """Bytes on the stack while deciding."""
        numbers = self.dimension * ((self.table is not None) + self.warped)
        numbers += 3 * self.arms + 1 if self.form.has_widths else self.arms  # the decision
        if self.form.has_widths:
            copies = self.arms if self.columns else 3 if self.common else 1
            numbers += self.solved_entries * copies
            if self.columns or self.form.looks_back:
                numbers += 2 * self.arms
        seen = POINTER * self.arms + self.real.bytes if self.form.looks_back else 0
        return numbers * self.real.bytes + seen + 2 * POINTER


def rom_bytes(policy: Policy, *, float32: bool = True) -> int:
    """Return the bytes of constants in a policy's C export without certificates, but for code."""
    return Layout.of(policy, Real(float32)).rom_bytes


def _kernel_constants(kernel: Kernel, dimension: int) -> int:
    if isinstance(kernel, Sum | Product):
        sides = (kernel.left, kernel.right)
        return sum(_kernel_constants(side, dimension) for side in sides)
    if isinstance(kernel, Scaled):
        return _kernel_constants(kernel.kernel, dimension)
    if isinstance(kernel, Warped):
        return 2 * dimension + _kernel_constants(kernel.kernel, dimension)
    if isinstance(kernel, Linear):
        return 0 if kernel.plain else 2 * dimension - kernel.categories
    if isinstance(kernel, Periodic):
        return 2 * dimension
    if isinstance(kernel, Stationary) and isinstance(kernel.bandwidth, tuple):
        return dimension
    return 0


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
        Index of the arm answered where nothing can be computed: the policy's fallback, or the arm
        of the highest mean over all observed contexts.
    tolerance
        How far means and gaps may be from Python's, and how close the scores of two arms whose
        order rounding may decide.
    near_ties
        At how many contexts of the self-test two arms, or a bound and its tolerance, are as close.
        Many in ``float`` mean that the policy needs ``double``, or a larger ridge.

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
        """The default arm, by its earlier name."""
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
    """Return up to which deviation it is rounding, and that in words."""
    # Formulas are emulated in their precision, kernels rounded from double.
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
    # Rows of L are columns of its packed transpose.
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
    """Write all files or none."""
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


_COMPILERS = ("cc", "gcc", "clang")


class CompilerError(RuntimeError):
    """There is no C compiler, or it refused the code."""


def find_compiler(compiler: str | None = None) -> str:
    """Return a C compiler: ``$CC``, cc, gcc or clang by default."""
    wanted = [compiler] if compiler else [*filter(None, [os.environ.get("CC")]), *_COMPILERS]
    for name in wanted:
        if found := shutil.which(name):
            return found
    raise CompilerError(
        f"no C compiler found, looked for {', '.join(wanted)}; install gcc or clang"
    )


def found_prefix(directory: Path, prefix: str | None = None) -> str:
    ending = FileNames.of("").header
    found = sorted(path.name.removesuffix(ending) for path in directory.glob(f"*{ending}"))
    if prefix is None and len(found) > 1:
        raise ValueError(f"{directory} holds several exports, {found}; say which by its prefix")
    called = prefix or (found[0] if found else DEFAULT_PREFIX)
    names = FileNames.of(called)
    for name in (names.header, names.source):
        if not (directory / name).is_file():
            raise FileNotFoundError(f"{directory} holds no {name}; write_c writes it")
    return called


def compile_shared(
    directory: str | os.PathLike[str],
    compiler: str | None = None,
    *,
    into: str | os.PathLike[str] | None = None,
    flags: Sequence[str] = ("-O2",),
    prefix: str | None = None,
) -> Path:
    """Compile an export, with loops over many contexts, to a shared library; return its path.

    The library goes to the folder ``into``, by default a new temporary one.
    """
    command, export = find_compiler(compiler), Path(directory)
    called = found_prefix(export, prefix)
    names = FileNames.of(called)
    target = Path(tempfile.mkdtemp(prefix="contextgap-") if into is None else into)
    batch, library = target / "batch.c", target / "contextgap_policy.so"
    batch.write_text(static_file("batch.c", called), encoding="utf-8")
    options = ["-shared", "-fPIC", *flags, "-I", str(export)]
    _compile(command, [*options, str(batch)], library, export / names.source)
    return library


def run_self_test(folder: Path, compiler: str | None, prefix: str) -> tuple[bool, str]:
    names = FileNames.of(prefix)
    sources = [str(folder / name) for name in (names.source, names.self_test)]
    with tempfile.TemporaryDirectory(prefix="contextgap-") as place:
        program = Path(place) / "selftest"
        _compile(find_compiler(compiler), ["-O2", *sources], program, folder / names.self_test)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def _compile(command: str, arguments: Sequence[str], target: Path, named: Path) -> None:
    done = subprocess.run(
        [command, "-std=c99", *arguments, "-o", str(target), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CompilerError(f"{command} refused {named}:\n{done.stderr}")


class CompiledDecisions(NamedTuple):
    """What the exported code decides at m contexts; None where it holds means only.

    ``arm``, ``status``, as in the header, and ``certificate`` have shape (m,), others (m, arms).
    """

    arm: IntArray
    status: IntArray
    mean: FloatArray
    width: FloatArray | None
    gap: FloatArray | None
    certificate: FloatArray | None


class CompiledPolicy:
    """An export that ``write_c`` wrote to ``directory``, compiled and loaded.

    It takes contexts of shape (m, d), with a number per column, and rounds them if it computes in
    ``float``. ``prefix`` says which export, if the folder holds several.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        compiler: str | None = None,
        *,
        flags: Sequence[str] = ("-O2",),
        prefix: str | None = None,
    ) -> None:
        self.prefix = found_prefix(Path(directory), prefix)
        with tempfile.TemporaryDirectory(prefix="contextgap-") as folder:
            # A loaded library outlives its file.
            library = compile_shared(
                directory, compiler, into=folder, flags=flags, prefix=self.prefix
            )
            self._library = ctypes.CDLL(str(library))
        facts = [self._named("batch_facts")(which) for which in range(5)]
        self.n_arms, self.dimension, size, self.has_widths, self.default_arm = facts
        self.dtype = np.dtype(np.float32 if size == 4 else np.float64)

    @property
    def labels(self) -> tuple[str, ...]:
        return self._texts("labels", self.n_arms)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._texts("columns", self.dimension)

    def recommend(self, contexts: Any, *, arms: Mask | None = None) -> IntArray:
        if arms is not None:
            return self.decide(contexts, eligible=arms).arm
        rows = self._rows(contexts)
        arm, status = np.empty((2, len(rows)), dtype=np.intc)
        self._named("batch_recommend")(
            _pointer(rows), ctypes.c_long(len(rows)), _pointer(arm), _pointer(status)
        )
        return arm.astype(np.intp)

    def decide(self, contexts: Any, *, eligible: Mask | None = None) -> CompiledDecisions:
        """Return decisions with what is believed; ``eligible`` has shape (m, arms)."""
        rows = self._rows(contexts)
        mask = self._mask(eligible, len(rows))
        arm, status = np.empty((2, len(rows)), dtype=np.intc)
        # Means alone leave them unwritten.
        tables = [np.zeros((len(rows), self.n_arms), dtype=self.dtype) for _ in range(3)]
        certificate = np.zeros(len(rows), dtype=self.dtype)
        self._named("batch_decide")(
            _pointer(rows),
            ctypes.c_long(len(rows)),
            *(_pointer(x) for x in (arm, status, *tables, certificate)),
            None if mask is None else _pointer(mask),
        )
        mean, width, gap = (table.astype(np.float64) for table in tables)
        return CompiledDecisions(
            arm=arm.astype(np.intp),
            status=status.astype(np.intp),
            mean=mean,
            width=width if self.has_widths else None,
            gap=gap if self.has_widths else None,
            certificate=certificate.astype(np.float64) if self.has_widths else None,
        )

    def watched(self, contexts: Any) -> tuple[FloatArray, int | None]:
        """Return a new watch's evidence after every row, and the row of the alarm."""
        rows, evidence = self._rows(contexts), np.empty(len(contexts))
        watch = self._named("batch_watch")
        watch.restype = ctypes.c_ulong
        alarm = watch(_pointer(rows), ctypes.c_long(len(rows)), _pointer(evidence))
        return evidence, int(alarm) or None

    def details(self, contexts: Any, arms: Mask | None) -> dict[str, Any]:
        """Return certificates, statuses as ``Policy.status`` has them, and unknown levels."""
        decided = self.decide(contexts, eligible=arms)
        unknown = decided.status == LEVEL_UNKNOWN
        status = np.where(unknown, Status.RECOMMENDED, -1)
        for python, ours in STATUSES.items():
            status[decided.status == ours] = python
        return {"status": status, "certificate": decided.certificate, "unknown": unknown}

    @property
    def takes_arms(self) -> bool:
        return hasattr(self._library, f"{self.prefix}_decide_among")

    def encode(self, column: str, text: str | None) -> int:
        data = None if text is None else text.encode("utf-8")
        return int(self._named(f"encode_{column}")(ctypes.c_char_p(data)))

    def _mask(self, eligible: Mask | None, rows: int) -> NDArray[Any] | None:
        if eligible is None:
            return None
        if not self.takes_arms:
            raise ValueError("the export takes no eligible arms; write it with eligible=True")
        if np.shape(eligible) != (rows, self.n_arms):
            wanted = (rows, self.n_arms)
            raise ValueError(f"eligible must have shape {wanted}, got {np.shape(eligible)}")
        return np.ascontiguousarray(eligible, dtype=np.ubyte)

    def _named(self, name: str) -> Any:
        return getattr(self._library, f"{self.prefix}_{name}")

    def _texts(self, name: str, count: int) -> tuple[str, ...]:
        table = (ctypes.c_char_p * count).in_dll(self._library, f"{self.prefix}_{name}")
        return tuple((text or b"").decode("utf-8") for text in table)

    def _rows(self, contexts: Any) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(contexts, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ValueError(
                f"contexts must have shape (m, {self.dimension}), got {np.shape(contexts)}"
            )
        return rows


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
