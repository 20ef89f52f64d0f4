"""The command that compares an export with its policy."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import numpy as np
import typer

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.cli.options import Json
from contextgap.cli.policies import ContextFile, PolicyFile
from contextgap.cli.tables import read_contexts
from contextgap.cli.terminal import complaints, out, print_json, print_table
from contextgap.export import DecisionRule, Parity, decision_rule, parity
from contextgap.export.answers import comparison_contexts
from contextgap.export.c.build import (
    CompiledPolicy,
    CompilerError,
    find_compiler,
    found_prefix,
    statuses_in_python,
)
from contextgap.export.c.literals import column_names, label_text
from contextgap.export.c.names import FileNames
from contextgap.export.onnx import GraphPolicy
from contextgap.export.typed_rows import seen_by_kernels
from contextgap.policy import Policy
from contextgap.tables.contexts import Encoded
from contextgap.tables.eligible import Mask

_ELIGIBLE = 0.6  # share of the arms


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
    prefix: Annotated[
        str | None, typer.Option(help="Of the C export, if its folder holds several.")
    ] = None,
    agreement: Annotated[
        float, typer.Option(help="Least share of equal decisions in float32.", min=0, max=1)
    ] = 0.99,
    json: Json = False,
) -> None:
    """Compare an export's decisions with the policy's; exit status 1 if they differ.

    So are the statuses that say how it came to them, certificates, if the export has any, and, if
    it can be told which arms are eligible, decisions among some of the arms. Near ties, where
    rounding decides, are no difference.
    """
    with complaints(), _compiler_errors():
        rule = Policy.load(policy)
        export, notice = _open(exported, compiler, prefix)
        _check_same_shape(rule, export, exported)
        plain = decision_rule(rule)
        sets = {"random": comparison_contexts(rule, plain, count, None, seed)}
        if contexts is not None:
            given = read_contexts(rule, contexts)
            sets[contexts.name] = comparison_contexts(rule, plain, count, given)
        compared = {name: _Comparison(rule, plain, export, rows) for name, rows in sets.items()}
        among = {}
        if export.takes_arms:
            masks = {
                name: random_masks(len(rows), len(rule.arms), seed) for name, rows in sets.items()
            }
            among = {
                name: _Comparison(rule, plain, export, rows, masks[name])
                for name, rows in sets.items()
            }
        self_test = None
        if isinstance(export, CompiledPolicy):
            self_test = _run_self_test(exported, compiler, FileNames.of(export.prefix))
    single = export.dtype == np.float32
    least = agreement if single else 1.0
    reasons = [reason for name, each in compared.items() for reason in each.reasons(name, least)]
    for name, each in among.items():
        reasons += each.reasons(f"{name}, some arms eligible", least)
    if self_test is not None and not self_test[0]:
        reasons.append("the self-test failed")
    if json:
        print_json(
            {
                "export": str(exported),
                "float32": single,
                "contexts": {name: each.described() for name, each in compared.items()},
                "eligible": {name: each.described() for name, each in among.items()} or None,
                "self_test": self_test and {"passed": self_test[0], "output": self_test[1]},
                "passed": not reasons,
            }
        )
    else:
        _print_comparison(f"{notice}, {export.dtype}", compared)
        if among:
            _print_comparison("among some of the arms, at random", among)
        if self_test is not None:
            out.print(f"self-test: {self_test[1]}", markup=False)
        different = sum(each.parity.different for each in (*compared.values(), *among.values()))
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
    def takes_arms(self) -> bool: ...

    @property
    def labels(self) -> tuple[Any, ...]: ...

    @property
    def columns(self) -> tuple[str, ...] | None: ...


def _arms(export: _Exported, contexts: FloatArray, eligible: Mask | None) -> IntArray:
    if isinstance(export, GraphPolicy):
        return export.recommend(contexts, arms=eligible)
    compiled = cast(CompiledPolicy, export)
    if eligible is None:
        return compiled.recommend(contexts)
    return compiled.decide(contexts, eligible=eligible).arm


def _details(
    export: _Exported, rule: DecisionRule, contexts: FloatArray, eligible: Mask | None
) -> dict[str, Any]:
    """Return an export's statuses as Python has them and its certificates, if it has any."""
    if isinstance(export, GraphPolicy):
        found: dict[str, Any] = {}
        if "certificate" in export.outputs:
            found = export.explain(contexts, arms=eligible)
        elif "status" in export.outputs:
            found = {"status": export.status(contexts, arms=eligible)}
        return {name: found[name] for name in ("status", "certificate") if name in found}
    decided = cast(CompiledPolicy, export).decide(contexts, eligible=eligible)
    status = statuses_in_python(rule, contexts, decided.status)
    return {"status": status, "certificate": decided.certificate}


def random_masks(rows: int, arms: int, seed: int) -> Mask:
    """Return which arms are eligible, shape (rows, arms): at least one in every row."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, arms)) < _ELIGIBLE
    mask[np.arange(rows), rng.integers(arms, size=rows)] = True
    return mask


def _open(path: Path, compiler: str | None, prefix: str | None) -> tuple[_Exported, str]:
    """Return an export, ready to be asked, and what runs it."""
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
    except Exception as error:  # onnxruntime's own, which have no common base
        raise ValueError(f"{path} cannot be read as ONNX: {error}") from None


@contextmanager
def _compiler_errors() -> Iterator[None]:
    try:
        yield
    except CompilerError as error:
        raise OSError(str(error)) from None


def _check_same_shape(policy: Policy, export: _Exported, path: Path) -> None:
    """Raise if the export cannot be of this policy."""
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


class _Comparison:
    """An export's decisions at some contexts, compared and timed."""

    def __init__(
        self,
        policy: Policy,
        rule: DecisionRule,
        export: _Exported,
        contexts: FloatArray,
        eligible: Mask | None = None,
    ) -> None:
        self.single = export.dtype == np.float32
        self.exported_seconds, arms = _timed(lambda: _arms(export, contexts, eligible))
        details = _details(export, rule, contexts, eligible)
        seen = Encoded(seen_by_kernels(rule.table, contexts), policy.state.schema)
        self.python_seconds, _ = _timed(lambda: policy.recommend(seen, arms=eligible))
        self.parity: Parity = parity(policy, arms, contexts, eligible=eligible, **details)

    def reasons(self, name: str, agreement: float) -> list[str]:
        """Say what differs at more contexts than it may."""
        found, most = self.parity, (1.0 - agreement) * self.parity.contexts
        wrong = {"decisions": found.different, "statuses": found.other_statuses or 0}
        if not self.single:
            wrong["certificates"] = found.other_certificates or 0
        return [
            f"{name}: {count} of {found.contexts} {what} differ"
            for what, count in wrong.items()
            if count > most
        ]

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


def _run_self_test(folder: Path, compiler: str | None, names: FileNames) -> tuple[bool, str]:
    """Build the exported self-test as its header says; return whether it passed, and its words."""
    with tempfile.TemporaryDirectory(prefix="contextgap-") as place:
        program = Path(place) / "selftest"
        command = [find_compiler(compiler), "-std=c99", "-O2", str(folder / names.source)]
        command += [str(folder / names.self_test), "-o", str(program), "-lm"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise CompilerError(f"{command[0]} refused {folder / names.self_test}:\n{built.stderr}")
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def _print_comparison(title: str, compared: dict[str, _Comparison]) -> None:
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
