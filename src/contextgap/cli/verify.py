"""The command that compares an export with its policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from contextgap.cli.options import Json
from contextgap.cli.policies import ContextFile, PolicyFile
from contextgap.cli.tables import read_contexts
from contextgap.cli.terminal import complaints, out, print_json, print_table
from contextgap.export import decision_rule
from contextgap.export.c.build import (
    CompiledPolicy,
    CompilerError,
    find_compiler,
    found_prefix,
    run_self_test,
)
from contextgap.export.c.literals import column_names, label_text
from contextgap.export.c.names import FileNames
from contextgap.export.onnx import GraphPolicy
from contextgap.export.parity import Comparison, Exported, compare, comparison_contexts
from contextgap.policy import Policy
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


def random_masks(rows: int, arms: int, seed: int) -> Mask:
    """Return which arms are eligible, shape (rows, arms): at least one in every row."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, arms)) < _ELIGIBLE
    mask[np.arange(rows), rng.integers(arms, size=rows)] = True
    return mask


def _open(path: Path, compiler: str | None, prefix: str | None) -> tuple[Exported, str]:
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


def _check_same_shape(policy: Policy, export: Exported, path: Path) -> None:
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
