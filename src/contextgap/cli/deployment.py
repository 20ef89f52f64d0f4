"""Commands that take a policy to where it decides, and check it there: export, verify."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import typer

from contextgap.arrays import FloatArray, IntArray
from contextgap.cli.policies import Json, PolicyFile
from contextgap.cli.terminal import complaints, out, print_json, print_table
from contextgap.compression import CompressionReport, compress
from contextgap.export import Parity, decision_rule, parity
from contextgap.export.c import CExport
from contextgap.export.c.build import CompiledPolicy, CompilerError, find_compiler
from contextgap.export.c.data import column_names
from contextgap.export.c.files import HEADER, SELF_TEST, SOURCE
from contextgap.export.c.literals import label_text
from contextgap.export.onnx import GraphPolicy, OnnxFile
from contextgap.export.reference import comparison_contexts
from contextgap.policy import Policy
from contextgap.problems.sheet import read_sheet

_SELF_TEST_CONTEXTS = 200
_TRIES = 8  # sizes to try until an export has as many bytes as allowed
_ENOUGH = 0.97  # or almost as many

ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]


def export_command(
    policy: PolicyFile,
    onnx: Annotated[Path | None, typer.Option(help="ONNX file to write.")] = None,
    c: Annotated[Path | None, typer.Option("--c", help="Folder to write C99 to.")] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Single precision.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Widths, gaps and certificates too.")
    ] = False,
    contexts: ContextFile = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(help="Compress first, to this ROM (C) or file size (ONNX).", min=1),
    ] = None,
    policy_out: Annotated[
        Path | None, typer.Option(help="Policy file for what --max-bytes makes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the compression.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Write a policy as an ONNX graph, as C99, or as both."""
    with complaints():
        if onnx is None and c is None:
            raise ValueError("nothing to write: give --onnx FILE, --c DIR or both")
        if policy_out is not None and max_bytes is None:
            raise ValueError("--policy-out writes what --max-bytes makes; give --max-bytes too")
        rule = Policy.load(policy)
        rows = None if contexts is None else _read_contexts(rule, contexts)
        exports = _Exports(onnx, c, float32, explain, rows)
        report = None
        if max_bytes is not None:
            rule, report = _compressed(rule, max_bytes, exports, seed)
        if policy_out is not None:
            rule.save(policy_out)
        graph, code = exports.write(rule)
    if json:
        print_json(_described(rule, graph, code, report, policy_out))
        return
    if report is not None:
        _print_compression(report)
    if graph is not None:
        _print_graph(rule, graph, float32)
    if code is not None:
        _print_code(rule, code, float32)
    if policy_out is not None:
        out.print(f"policy: {policy_out}", soft_wrap=True, markup=False)


class _Exports:
    """What to write, and where."""

    def __init__(
        self,
        onnx: Path | None,
        c: Path | None,
        float32: bool,
        explain: bool,
        contexts: FloatArray | None,
    ) -> None:
        self.onnx, self.c = onnx, c
        self.float32, self.explain = float32, explain
        self.contexts = contexts

    def write(self, policy: Policy) -> tuple[OnnxFile | None, CExport | None]:
        graph, code = None, None
        if self.onnx is not None:
            graph = policy.to_onnx(self.onnx, float32=self.float32, explain=self.explain)
        if self.c is not None:
            code = policy.to_c(
                self.c,
                float32=self.float32,
                certificates=self.explain,
                contexts=_thinned(self.contexts),
            )
        return graph, code

    def bytes(self, policy: Policy) -> int:
        """Return what the larger of both takes."""
        with tempfile.TemporaryDirectory(prefix="contextgap-") as folder:
            trial = _Exports(
                self.onnx and Path(folder) / "policy.onnx",
                self.c and Path(folder) / "c",
                self.float32,
                self.explain,
                self.contexts,
            )
            graph, code = trial.write(policy)
        return max(graph.size if graph else 0, code.rom_bytes if code else 0)


def _thinned(contexts: FloatArray | None) -> FloatArray | None:
    """At most as many contexts as a self-test has room for, from all over the file."""
    if contexts is None or len(contexts) <= _SELF_TEST_CONTEXTS:
        return contexts
    return contexts.take(np.linspace(0, len(contexts) - 1, _SELF_TEST_CONTEXTS).astype(int), axis=0)


def _compressed(
    policy: Policy, most: int, exports: _Exports, seed: int
) -> tuple[Policy, CompressionReport]:
    """Return a policy whose exports take at most ``most`` bytes.

    Bytes of C without certificates are known beforehand; those of a graph, or of certificates, only
    once written. So what was too much is taken off, and where that is not it, the middle between
    too little and too much.
    """

    def attempt(limit: int) -> tuple[tuple[Policy, CompressionReport], int]:
        made = compress(
            policy, bytes=limit, contexts=exports.contexts, float32=exports.float32, seed=seed
        )
        return made, exports.bytes(made[0])

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
        except ValueError:  # too little even for a policy without points
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


def verify_command(
    policy: PolicyFile,
    exported: Annotated[
        Path, typer.Argument(help="A .onnx file or a folder that export wrote.", show_default=False)
    ],
    contexts: ContextFile = None,
    count: Annotated[int, typer.Option(help="Random contexts to compare at.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the random contexts.", min=0)] = 0,
    compiler: Annotated[
        str | None, typer.Option(help="For C; $CC, cc, gcc or clang if left out.")
    ] = None,
    agreement: Annotated[
        float, typer.Option(help="Least share of equal decisions in float32.", min=0, max=1)
    ] = 0.99,
    json: Json = False,
) -> None:
    """Compare an export's decisions with the policy's; exit status 1 if they differ.

    Near ties, where rounding decides, are no difference.
    """
    with complaints(), _compiler_errors():
        rule = Policy.load(policy)
        export, notice = _open(exported, compiler)
        _check_same_shape(rule, export, exported)
        plain = decision_rule(rule)
        sets = {"random": comparison_contexts(rule, plain, count, None, seed)}
        if contexts is not None:
            sets[contexts.name] = _read_contexts(rule, contexts)
        compared = {name: _Comparison(rule, export, rows) for name, rows in sets.items()}
        self_test = _run_self_test(exported, compiler) if exported.is_dir() else None
    single = export.dtype == np.float32
    reasons = [
        f"{name}: {result.different} of {result.contexts} decisions differ"
        for name, result in ((name, each.parity) for name, each in compared.items())
        if (result.agreement < agreement if single else result.different)
    ]
    if self_test is not None and not self_test[0]:
        reasons.append("the self-test failed")
    if json:
        print_json(
            {
                "export": str(exported),
                "float32": single,
                "contexts": {name: each.described() for name, each in compared.items()},
                "self_test": self_test and {"passed": self_test[0], "output": self_test[1]},
                "passed": not reasons,
            }
        )
    else:
        _print_comparison(f"{notice}, {export.dtype}", compared)
        if self_test is not None:
            out.print(f"self-test: {self_test[1]}", markup=False)
        different = sum(each.parity.different for each in compared.values())
        out.print(_verdict(reasons, different), markup=False)
    if reasons:
        raise typer.Exit(1)


def _verdict(reasons: list[str], different: int) -> str:
    if reasons:
        advice = "an export with --max-bytes decides as the policy that --policy-out wrote"
        return f"FAILED: {'; '.join(reasons)}\n({advice})"
    if different:
        return f"passed: all but {different} decisions are the policy's"
    return "passed: all decisions are the policy's, near ties apart"


class _Exported(Protocol):
    """What both kinds of export can be asked."""

    dimension: int
    dtype: np.dtype[Any]

    @property
    def labels(self) -> tuple[Any, ...]: ...

    @property
    def columns(self) -> tuple[str, ...] | None: ...

    def recommend(self, contexts: Any) -> IntArray: ...


def _open(path: Path, compiler: str | None) -> tuple[_Exported, str]:
    """Return an export, ready to be asked, and what runs it."""
    if path.is_dir():
        missing = [name for name in (HEADER, SOURCE, SELF_TEST) if not (path / name).is_file()]
        if missing:
            raise ValueError(
                f"{path} is no exported policy: it holds no {missing[0]}; "
                "'contextgap export --c' writes one"
            )
        return CompiledPolicy(path, compiler), f"C by {Path(find_compiler(compiler)).name}"
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
    except Exception as error:  # onnxruntime's own, which have no common base
        raise ValueError(f"{path} cannot be read as ONNX: {error}") from None


@contextmanager
def _compiler_errors() -> Iterator[None]:
    try:
        yield
    except CompilerError as error:
        raise OSError(str(error)) from None


def _check_same_shape(policy: Policy, export: _Exported, path: Path) -> None:
    """Complain if the export cannot be of this policy."""
    rule = decision_rule(policy)
    names = list(column_names(rule))
    pairs: dict[str, tuple[Any, Any]] = {
        "numbers per context": (rule.dimension, export.dimension),
        "arms": ([*map(label_text, rule.labels)], [*map(label_text, export.labels)]),
        "columns": (names, list(export.columns or names)),
    }
    for what, (expected, got) in pairs.items():
        if expected != got:
            raise ValueError(
                f"{path} is not of this policy: its {what} are {got}, the policy's {expected}"
            )


class _Comparison:
    """An export's decisions at some contexts, compared and timed."""

    def __init__(self, policy: Policy, export: _Exported, contexts: FloatArray) -> None:
        self.exported_seconds, chosen = _timed(lambda: export.recommend(contexts))
        self.python_seconds, _ = _timed(lambda: policy.recommend(contexts))
        self.parity: Parity = parity(policy, chosen, contexts)

    def described(self) -> dict[str, Any]:
        return {
            **asdict(self.parity),
            "agreement": self.parity.agreement,
            "microseconds": self._microseconds(self.exported_seconds),
            "microseconds_in_python": self._microseconds(self.python_seconds),
        }

    def _microseconds(self, seconds: float) -> float:
        return 1e6 * seconds / self.parity.contexts


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def _run_self_test(folder: Path, compiler: str | None) -> tuple[bool, str]:
    """Build the exported self-test as its header says; return whether it passed, and its words."""
    with tempfile.TemporaryDirectory(prefix="contextgap-") as place:
        program = Path(place) / "selftest"
        command = [find_compiler(compiler), "-std=c99", "-O2", str(folder / SOURCE)]
        command += [str(folder / SELF_TEST), "-o", str(program), "-lm"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise CompilerError(f"{command[0]} refused {folder / SELF_TEST}:\n{built.stderr}")
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def _read_contexts(policy: Policy, path: Path) -> FloatArray:
    sheet = read_sheet(path)
    rows = sheet.numbers(list(policy.columns or sheet.columns))
    if not len(rows):
        raise ValueError(f"{path} holds no contexts")
    return policy._read(rows)[0]


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
        "c": code and {**asdict(code), "multiply_adds": code.operations.multiply_adds},
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


def _print_graph(policy: Policy, graph: OnnxFile, float32: bool) -> None:
    rows = [
        *_rule_rows(policy, "float32" if float32 else "float64"),
        ["file", f"{graph.size} bytes"],
        ["operators", f"opset {graph.opset}"],
        ["outputs", ", ".join(graph.outputs)],
    ]
    print_table("ONNX", ["", ""], rows)
    out.print(f"written to {graph.path}", soft_wrap=True, markup=False)


def _print_code(policy: Policy, code: CExport, float32: bool) -> None:
    count = code.operations
    rows = [
        *_rule_rows(policy, "float" if float32 else "double"),
        ["ROM, constants", f"{code.rom_bytes} bytes"],
        ["RAM, on the stack", f"{code.ram_bytes} bytes"],
        ["multiply-adds per decision", count.multiply_adds],
        ["divisions, exp, sqrt, sin", f"{count.divisions}, {count.exp}, {count.sqrt}, {count.sin}"],
        ["fallback arm", f"{code.fallback}, {label_text(policy.arms[code.fallback])}"],
        ["near ties in the self-test", code.near_ties],
    ]
    print_table("C99", ["", ""], [[name, str(value)] for name, value in rows])
    out.print(f"written to {code.source.parent}", soft_wrap=True, markup=False)


def _rule_rows(policy: Policy, numbers: str) -> list[list[Any]]:
    return [
        ["deploys by", type(policy.method.recommender).__name__],
        ["points per arm", ", ".join(map(str, policy.counts.values()))],
        ["numbers", numbers],
    ]


def _print_comparison(title: str, compared: dict[str, _Comparison]) -> None:
    names = {
        "contexts": "contexts",
        "same": "same decision",
        "near_ties": "near ties decided otherwise",
        "different": "different",
        "worst_added_regret": "worst regret added",
        "mean_added_regret": "mean regret added",
        "microseconds": "µs per decision, export",
        "microseconds_in_python": "µs per decision, Python, batch",
    }
    columns = [each.described() for each in compared.values()]
    rows = [[shown, *(column[name] for column in columns)] for name, shown in names.items()]
    print_table(title, ["", *compared], rows)
