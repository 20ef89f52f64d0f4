"""The commands that export a policy as ONNX or C, and compare an export with its policy."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from contextgap.base.arrays import evenly
from contextgap.base.checks import Mask
from contextgap.base.files import check_output
from contextgap.cli.policies import ContextFile, PolicyFile, read_contexts
from contextgap.cli.terminal import Answer, noting_warnings, out, print_table
from contextgap.export import decision_rule
from contextgap.export.c import (
    CExport,
    CompiledPolicy,
    CompilerError,
    find_compiler,
    found_prefix,
    run_self_test,
)
from contextgap.export.c.text import DEFAULT_PREFIX, FileNames, column_names, label_text
from contextgap.export.compression import CompressionReport, compress
from contextgap.export.onnx import GraphPolicy, OnnxFile
from contextgap.export.rule import Comparison, compare, comparison_contexts
from contextgap.policy import Policy

_SELF_TEST_CONTEXTS = 200
_TRIES = 8  # sizes to try
_ENOUGH = 0.97  # or almost as many
_ELIGIBLE = 0.6  # share of arms in random masks


@dataclass(frozen=True)
class Exports:
    onnx: Annotated[Path | None, typer.Option(help="ONNX file to write.")] = None
    c: Annotated[Path | None, typer.Option("--c", help="Folder to write C99 to.")] = None
    float32: Annotated[bool, typer.Option("--float32", help="Single precision.")] = False
    explain: Annotated[
        bool, typer.Option("--explain", help="Widths, gaps and certificates too.")
    ] = False
    prefix: Annotated[
        str, typer.Option(help="Prefix of all names in C, to link several policies.")
    ] = DEFAULT_PREFIX
    eligible: Annotated[
        bool, typer.Option("--eligible", help="Take the eligible arms as a second input.")
    ] = False

    def write(self, policy: Policy, contexts: Any) -> tuple[OnnxFile | None, CExport | None]:
        graph, code = None, None
        how: Any = {"float32": self.float32, "eligible": self.eligible}
        if self.onnx is not None:
            graph = policy.to_onnx(self.onnx, explain=self.explain, **how)
        if self.c is not None:
            how |= {"certificates": self.explain, "prefix": self.prefix}
            if contexts is not None:
                contexts = contexts[evenly(np.arange(len(contexts)), _SELF_TEST_CONTEXTS).tolist()]
            code = policy.to_c(self.c, contexts=contexts, **how)
        return graph, code

    def bytes(self, policy: Policy, contexts: Any) -> int:
        with tempfile.TemporaryDirectory(prefix="contextgap-") as folder:
            onnx, c = Path(folder) / "policy.onnx", Path(folder) / "c"
            trial = replace(self, onnx=self.onnx and onnx, c=self.c and c)
            with warnings.catch_warnings(action="ignore"):
                graph, code = trial.write(policy, contexts)
        return max(graph.size if graph else 0, code.rom_bytes if code else 0)


def export_command(
    policy: PolicyFile,
    exports: Exports,
    contexts: ContextFile = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(help="Compress first, to this ROM (C) or file size (ONNX).", min=1),
    ] = None,
    policy_out: Annotated[
        Path | None, typer.Option(help="Policy file for what --max-bytes makes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the compression.", min=0)] = 0,
) -> Iterator[Any]:
    """Write a policy as an ONNX graph, as C99, or as both."""
    if exports.onnx is None and exports.c is None:
        raise ValueError("nothing to write: give --onnx FILE, --c DIR or both")
    if policy_out is not None and max_bytes is None:
        raise ValueError("--policy-out writes what --max-bytes makes; give --max-bytes too")
    for written in (exports.onnx, policy_out):
        if written is not None:
            check_output(written, [policy, *([] if contexts is None else [contexts])])
    rule = Policy.load(policy)
    rows = None if contexts is None else read_contexts(rule, contexts)
    report = None
    if max_bytes is not None:
        rule, report = _compressed(rule, max_bytes, exports, rows, seed)
    if policy_out is not None:
        rule.save(policy_out)
    with noting_warnings():
        graph, code = exports.write(rule, rows)
    yield _described(rule, graph, code, report, policy_out)
    if report is not None:
        _print_compression(report)
    if graph is not None:
        found: list[tuple[str, Any]] = [
            ("file", f"{graph.size} bytes"),
            ("operators", f"opset {graph.opset}"),
            ("outputs", ", ".join(graph.outputs)),
        ]
        numbers = "float32" if exports.float32 else "float64"
        _print_export("ONNX", rule, numbers, found, graph.path)
    if code is not None:
        arm = "default arm" if rule.fallback is None else "fallback arm"
        found = [
            ("ROM, constants", f"{code.rom_bytes} bytes"),
            ("RAM, on the stack", f"{code.ram_bytes} bytes"),
            (arm, f"{code.default_arm}, {label_text(rule.arms[code.default_arm])}"),
            ("near ties in the self-test", code.near_ties),
        ]
        numbers = "float" if exports.float32 else "double"
        _print_export("C99", rule, numbers, found, code.source.parent)
    if policy_out is not None:
        out.print(f"policy: {policy_out}")


def _compressed(
    policy: Policy, most: int, exports: Exports, contexts: Any, seed: int
) -> tuple[Policy, CompressionReport]:
    """Return a policy whose exports take at most ``most`` bytes.

    The bytes of graphs and certificates are known once written. So the excess is subtracted from
    the target and, if that fails, sizes are tried by bisection.
    """

    def attempt(limit: int) -> tuple[tuple[Policy, CompressionReport], int]:
        made = compress(policy, bytes=limit, contexts=contexts, float32=exports.float32, seed=seed)
        return made, exports.bytes(made[0], contexts)

    made, size = attempt(most)
    fitting, low, high = (made, most, most) if size <= most else (None, 0, most)
    smallest = size
    for _ in range(_TRIES):
        if high - low <= 1:
            break
        limit = made[1].bytes - (size - most)
        if not low < limit < high:
            limit = (low + high) // 2
        try:
            made, size = attempt(limit)
        except ValueError:  # too little without any points
            low = limit
            continue
        smallest = min(size, smallest)
        if size > most:
            high = limit
            continue
        fitting, low = made, limit
        if size >= _ENOUGH * most:
            break
    if fitting is None:
        raise ValueError(
            f"--max-bytes {most} is too little for this export; the smallest found takes {smallest}"
        )
    return fitting


def _described(
    policy: Policy,
    graph: OnnxFile | None,
    code: CExport | None,
    report: CompressionReport | None,
    saved: Path | None,
) -> dict[str, Any]:
    compression = report and {**asdict(report), "curve": [row._asdict() for row in report.curve]}
    return {
        "rule": type(policy.method.recommender).__name__,
        "points": list(policy.counts.values()),
        "onnx": graph and asdict(graph),
        "c": code
        and {
            **asdict(code),
            "fallback": None if policy.fallback is None else code.default_arm,
        },
        "compression": compression,
        "policy": saved and str(saved),
    }


def _print_compression(report: CompressionReport) -> None:
    before, after = report.points_before, report.points
    rows = [
        ["points per arm, before", ", ".join(map(str, before))],
        ["points per arm", ", ".join(map(str, after))],
        ["constants in C, before", f"{report.bytes_before} bytes"],
        ["constants in C", f"{report.bytes} bytes"],
        ["deploys by", report.recommender],
        ["decisions unchanged, held out", f"{100 * report.agreement:.2f} %"],
        ["average regret added, as believed", f"{report.added_regret:.3g}"],
        ["  at most, where intervals hold", f"{report.added_regret_bound:.3g}"],
    ]
    print_table("compressed" if before != after else "small enough as it was", ["", ""], rows)


def _print_export(
    title: str, policy: Policy, numbers: str, rows: Sequence[Sequence[Any]], written: Path
) -> None:
    sizes = policy.state.model.support_sizes(policy.state.active)
    shown = [
        ("deploys by", type(policy.method.recommender).__name__),
        ("points per arm", ", ".join(map(str, sizes))),
        ("numbers", numbers),
        *rows,
    ]
    print_table(title, ["", ""], [[name, str(value)] for name, value in shown])
    out.print(f"written to {written}")


def verify_command(
    policy: PolicyFile,
    exported: Annotated[
        Path, typer.Argument(help="A .onnx file or a folder that export wrote.", show_default=False)
    ],
    contexts: ContextFile = None,
    count: Annotated[int, typer.Option(help="Random contexts to compare at.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the random contexts.", min=0)] = 0,
    compiler: Annotated[
        str | None, typer.Option(help="For C; $CC, cc, gcc or clang if left out.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Prefix of the C export, if its folder holds several.")
    ] = None,
    agreement: Annotated[
        float, typer.Option(help="Least share of equal decisions in float32.", min=0, max=1)
    ] = 0.99,
) -> Iterator[Any]:
    """Compare an export's decisions with the policy's; exit status 1 if they differ.

    Statuses and certificates are compared too, if the export has them.

    An export with eligible arms is also compared among some of the arms.

    Near ties, where rounding decides, do not count as differences.
    """
    with _compiler_errors():
        rule = Policy.load(policy)
        export, notice = _open(exported, compiler, prefix)
        _check_same_shape(rule, export, exported)
        plain = decision_rule(rule)
        sets = {"random": comparison_contexts(rule, plain, count, None, seed)}
        if contexts is not None:
            given = read_contexts(rule, contexts)
            sets[contexts.name] = comparison_contexts(rule, plain, count, given)
        compared = {name: compare(rule, export, rows) for name, rows in sets.items()}
        among = {}
        if export.takes_arms:
            among = {
                name: compare(rule, export, rows, random_masks(len(rows), len(rule.arms), seed))
                for name, rows in sets.items()
            }
        self_test = None
        if isinstance(export, CompiledPolicy):
            self_test = run_self_test(exported, compiler, export.prefix)
    single = export.dtype == np.float32
    least = agreement if single else 1.0
    reasons = [reason for name, each in compared.items() for reason in each.reasons(name, least)]
    for name, each in among.items():
        reasons += each.reasons(f"{name}, some arms eligible", least)
    if self_test is not None and not self_test[0]:
        reasons.append("the self-test failed")
    answer = {
        "export": str(exported),
        "float32": single,
        "contexts": {name: each.described() for name, each in compared.items()},
        "eligible": {name: each.described() for name, each in among.items()} or None,
        "self_test": self_test and {"passed": self_test[0], "output": self_test[1]},
        "passed": not reasons,
    }
    yield Answer(answer, int(bool(reasons)))
    _print_comparison(f"{notice}, {export.dtype}", compared)
    if among:
        _print_comparison("among some of the arms, at random", among)
    if self_test is not None:
        out.print(f"self-test: {self_test[1]}", soft_wrap=False)
    different = sum(each.parity.different for each in (*compared.values(), *among.values()))
    out.print(_verdict(reasons, different), soft_wrap=False)


def _verdict(reasons: list[str], different: int) -> str:
    if reasons:
        advice = "an export with --max-bytes decides as the policy that --policy-out wrote"
        return f"FAILED: {'; '.join(reasons)}\n({advice})"
    if different:
        return f"passed: all but {different} decisions are the policy's"
    return "passed: all decisions are the policy's, near ties apart"


def random_masks(rows: int, arms: int, seed: int) -> Mask:
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, arms)) < _ELIGIBLE
    mask[np.arange(rows), rng.integers(arms, size=rows)] = True
    return mask


def _open(path: Path, compiler: str | None, prefix: str | None) -> tuple[Any, str]:
    if path.is_dir():
        try:
            names = FileNames.of(found_prefix(path, prefix))
            if not (path / names.self_test).is_file():
                raise FileNotFoundError(f"{path} holds no {names.self_test}")
        except FileNotFoundError as error:
            raise ValueError(
                f"{path} is no exported policy: {error}; 'contextgap export --c' writes one"
            ) from None
        compiled = CompiledPolicy(path, compiler, prefix=prefix)
        return compiled, f"C by {Path(find_compiler(compiler)).name}"
    if not path.exists():
        raise ValueError(f"there is no {path}; 'contextgap export' writes a .onnx file or a folder")
    if path.suffix != ".onnx":
        raise ValueError(
            f"{path} is no exported policy: a .onnx file, or the folder that --c wrote, is"
        )
    try:
        return GraphPolicy(path, threads=1), "ONNX by onnxruntime"
    except (ImportError, OSError, ValueError):
        raise
    except Exception as error:  # onnxruntime's own errors have no base
        raise ValueError(f"{path} cannot be read as ONNX: {error}") from None


@contextmanager
def _compiler_errors() -> Iterator[None]:
    try:
        yield
    except CompilerError as error:
        raise OSError(str(error)) from None


def _check_same_shape(policy: Policy, export: Any, path: Path) -> None:
    rule = decision_rule(policy)
    names = list(column_names(rule.columns, rule.inputs))
    pairs: dict[str, tuple[Any, Any]] = {
        "numbers per context": (rule.inputs, export.dimension),
        "arms": ([*map(label_text, rule.labels)], [*map(label_text, export.labels)]),
        "columns": (names, list(export.columns or names)),
    }
    table = getattr(export, "table", None)
    if rule.table is not None and table is not None:
        # The same level may have another code.
        pairs["kinds and levels"] = (rule.table.describe(), table.describe())
    for what, (expected, got) in pairs.items():
        if expected != got:
            raise ValueError(
                f"{path} is not of this policy: its {what} are {got}, the policy's {expected}"
            )


def _print_comparison(title: str, compared: dict[str, Comparison]) -> None:
    names = {
        "contexts": "contexts",
        "same": "same decision",
        "near_ties": "near ties decided otherwise",
        "different": "different",
        "worst_added_regret": "worst regret added",
        "mean_added_regret": "mean regret added",
        "other_statuses": "other statuses",
        "certificate_error": "largest difference of certificates",
        "microseconds": "µs per decision, export",
        "microseconds_in_python": "µs per decision, Python, batch",
    }
    columns = [each.described() for each in compared.values()]
    names = {name: shown for name, shown in names.items() if columns[0][name] is not None}
    rows = [[shown, *(column[name] for column in columns)] for name, shown in names.items()]
    print_table(title, ["", *compared], rows)
