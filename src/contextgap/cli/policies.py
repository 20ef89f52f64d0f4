"""The commands about policies in files: learn, show, recommend and watch; and a project to begin.

Tables are read block by block, and written with the answers to their rows.
"""

from __future__ import annotations

import csv
import gzip
import json as js
import re
import shlex
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, TypeAlias

import numpy as np
import typer

from contextgap.base.checks import Label, check_written, label_array
from contextgap.base.components import Component, study_import
from contextgap.base.files import check_output, whole_file
from contextgap.beliefs import PosteriorWidth
from contextgap.cli import terminal
from contextgap.cli.terminal import (
    CORES,
    Answer,
    AnySeed,
    Bandwidth,
    ColumnOptions,
    Dask,
    Json,
    Most,
    SafeArm,
    Separator,
    SkipMissing,
    cluster,
    complaints,
    err,
    list_option,
    noting_warnings,
    out,
    phases,
    plain,
    print_table,
    say_warning,
)
from contextgap.insight.learnt import bandwidths_by_column
from contextgap.kernels import Gaussian
from contextgap.learner.bulk import SAMPLE, columns_for, learn_trials, partitions_of
from contextgap.methods.method import METHODS
from contextgap.models import POINTS
from contextgap.policy import Policy, Status
from contextgap.tables.columns import Category, Columns, Cyclic, Date
from contextgap.tables.contexts import Encoded
from contextgap.tables.files import (
    BLOCK,
    PARQUET,
    RECORDS,
    VOWPAL,
    Sheet,
    Trials,
    check_alike,
    check_columns,
    count_rows,
    eligible_arms,
    files_named,
    read_blocks,
    read_sheet,
    suffix_of,
)
from contextgap.tables.table import is_missing_number, to_number

PolicyFile = Annotated[Path, typer.Argument(help="A policy's .cgap file.")]
ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]
EligibleColumn = Annotated[
    list[str] | None,
    list_option("Columns with the arms eligible in each row, such as a|b; of several, all arms."),
]

CardRows = Annotated[
    int | None,
    typer.Option(
        help="Rewards predicted leave-one-out for the score card; by default 10 seconds' worth.",
        min=2,
    ),
]


def kind_of_bounds(probability: float | None) -> str:
    if probability is None:
        return "heuristic"
    return f"holds with probability {probability:g}"


def show_command(policy: PolicyFile) -> Iterator[Any]:
    """Show what a policy file holds."""
    rule = Policy.load(policy)
    yield described(rule)
    print_policy(str(policy), rule)


def described(policy: Policy) -> dict[str, Any]:
    table = policy.state.schema.table
    safe = None if policy.fallback is None else policy.fallback.describe()
    if safe is not None and table is not None and safe["low"]:  # in the words of the table
        safe["seen"] = table.seen(safe.pop("low"), safe.pop("high"))
    return {
        "arms": list(policy.arms),
        "observations": {str(arm): count for arm, count in policy.counts.items()},
        "method": policy.method.name,
        "kernel": policy.kernel.describe(),
        "ridge": policy.ridge,
        "width": policy.width.describe(),
        "prior_mean": policy.prior_mean,
        "dimension": policy.dimension,
        "columns": policy.columns,
        "kinds": policy.kinds and {name: each.describe() for name, each in policy.kinds.items()},
        "bandwidths": bandwidths_by_column(policy),
        "bounds": kind_of_bounds(policy.probability),
        "card": policy.card.describe() if has_card(policy) else None,
        "fallback": safe,
        "provenance": policy.provenance.describe(),
    }


def _short(part: Component) -> str:
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", str(part))


def print_policy(title: str, policy: Policy) -> None:
    print_settings(title, policy)
    print_card(policy)


def print_settings(title: str, policy: Policy) -> None:
    bandwidths = bandwidths_by_column(policy)
    rows: list[list[Any]] = [
        ["deploys by", policy.state.rules.deployment],
        ["method", policy.method.name],
        ["kernel", _short(policy.kernel)],
        *([] if bandwidths is None else [["bandwidths", _in_words(bandwidths)]]),
        ["ridge", policy.ridge],
        ["width", _short(policy.width)],
        ["prior mean", policy.prior_mean],
        ["context", _columns_in_words(policy)],
        ["bounds", kind_of_bounds(policy.probability)],
    ]
    if policy.fallback is not None:
        safe, most = policy.fallback.arm, policy.fallback.tolerance
        when = "outside what was seen" if most is None else f"outside, or bound above {most:g}"
        rows.append(["fallback", f"{safe} ({when})"])
    made = policy.provenance
    if made.version is not None and made.created is not None:
        rows.append(["made by", f"contextgap {made.version}, {made.created:%Y-%m-%d %H:%M} UTC"])
    if made.data is not None:
        rows.append(["data", f"sha256 {made.data[:16]}…"])
    shown = [[name, f"{x:.4g}" if isinstance(x, float) else x] for name, x in rows]
    print_table(title, ["", "value"], shown)
    counts = policy.counts
    print_table("arms", ["arm", "observations"], [[str(arm), n] for arm, n in counts.items()])


def _in_words(bandwidths: dict[str, list[float]]) -> str:
    listed = ((name, ", ".join(f"{x:.4g}" for x in own)) for name, own in bandwidths.items())
    return "; ".join(f"{name} {numbers}" for name, numbers in listed)


def _columns_in_words(policy: Policy) -> str:
    if policy.kinds is None:
        return f"{policy.dimension} numbers"
    if policy.state.schema.table is None:
        return ", ".join(policy.kinds)
    found = []
    for name, kind in policy.kinds.items():
        period = f" {kind.period:g}" if isinstance(kind, Cyclic) else ""
        missing = " with missing values" if kind.missing else ""
        found.append(f"{name}: {type(kind).__name__.lower()}{period}{missing}")
    return ", ".join(found)


def has_card(policy: Policy) -> bool:
    return sum(policy.counts.values()) > 1


def print_card(policy: Policy) -> None:
    if not has_card(policy):
        return
    card = policy.card
    print_table("score card", ["", "value"], card.rows())
    out.print(card.basis, soft_wrap=False)
    for warning in card.warnings:
        say_warning(warning, out)


def read_contexts(policy: Policy, path: Path) -> Any:
    sheet = read_sheet(path)
    encoded_in(sheet, policy)
    return _table(sheet, policy)


def encoded_in(sheet: Sheet, policy: Policy) -> Encoded:
    """Return a table's contexts for the kernel; errors name the file."""
    table = _table(sheet, policy)
    try:
        return Encoded(policy.state.read(table)[0], policy.state.schema)
    except (TypeError, ValueError) as error:
        raise ValueError(sheet.located(error)) from None


def _whole(path: Path, policy: Policy, separator: str | None) -> Encoded:
    parts = [encoded_in(sheet, policy).rows for sheet in read_blocks(path, separator)]
    return Encoded(np.concatenate(parts), policy.state.schema)


def read_features(path: Path, arm: str) -> dict[str, dict[str, Any]]:
    sheet = read_sheet(path)
    names = [name for name in sheet.columns if name != arm]
    arms = [str(cell).strip() for cell in sheet.cells_of(arm)]
    if not names:
        raise ValueError(f"{path}: no column is left as a feature beside {arm!r}")
    if len(set(arms)) < len(arms):
        twice = next(each for each in arms if arms.count(each) > 1)
        raise ValueError(f"{path}: the arm {twice!r} is there twice; it has one row of features")
    return dict(zip(arms, sheet.table(names), strict=True))


def described_table(
    path: Path, said: ColumnOptions, columns: Sequence[str] | None = None
) -> tuple[Any, Columns | None]:
    """Return the contexts in a file, and what the user said of them, if anything."""
    sheet, exclude = read_sheet(path), said.exclude or ()
    for name in exclude:
        sheet.cells_of(name)
    with noting_warnings():
        names = [each for each in columns or sheet.others(()) if each not in exclude]
    if not names:
        raise ValueError(f"{path}: no column is left as context")
    kinds, missing = said.kinds, said.missing or ()
    check_columns([*kinds, *missing], names)
    table = sheet.table(names, kinds)
    if not kinds and not missing:
        return table, None
    return table, Columns.from_table(table, **kinds).with_missing(missing)


def _table(sheet: Sheet, policy: Policy) -> Any:
    known = policy.state.schema.table
    if policy.columns is None:
        raise ValueError(
            f"{sheet.path}: columns have names, {', '.join(sheet.columns)}, but the policy was "
            "learnt from numbers without names; in Python, give it theirs in the order learnt and "
            "save it: policy.with_columns([...]).save(...)"
        )
    if known is not None:
        return sheet.table(list(policy.columns), known.kinds)
    return sheet.numbers(list(policy.columns))


Answers: TypeAlias = dict[str, list[Any]]
Write: TypeAlias = Callable[[Sheet, Answers], None]
_NAMED = 5  # arms or levels in a warning
_NOT_WRITTEN = (".feather", ".json", ".ods", ".xls", ".xlsx", *RECORDS)


ContextFiles = Annotated[
    list[str],
    typer.Argument(help='.csv, .tsv or .parquet files, or "logs/*.csv"; a context per row.'),
]


def recommend_command(
    policy: PolicyFile,
    contexts: ContextFiles,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A .csv, .tsv or .parquet file, or .csv.gz; CSV to stdout if left out.",
        ),
    ] = None,
    bounds: Annotated[
        bool, typer.Option(help="Add a regret bound for each row, which takes longer.")
    ] = True,
    eligible: EligibleColumn = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Recommend an arm for every row; the file's own columns are kept.

    Added columns: the arm, a status, and a bound on the regret of the recommendation.

    The column "bound" says "heuristic", or with which probability the bounds hold.
    """
    times: Counter[str] = Counter()
    unknown: set[str] = set()
    new: set[str] = set()
    with complaints():
        if output is not None:
            if json:
                raise ValueError(
                    f"--json prints the answers, and nothing is written to {output}; leave one"
                )
            suffix = suffix_of(output)
            if suffix in _NOT_WRITTEN or (suffix in PARQUET and output.suffix.lower() == ".gz"):
                raise ValueError(
                    f"{output}: known are .csv, .tsv and .parquet files, and .gz of text"
                )
            check_output(output, [policy])
        rule = Policy.load(policy)
        files = files_named(contexts)
        rows = sum(map(count_rows, files))
        # A bar would stand among the answers, or be gone at once.
        quiet = (output is None and sys.stdout.isatty()) or rows <= BLOCK
        check_written(rule.arms)
        kinds = (rule.kinds or {}).items()
        numbers = [name for name, kind in kinds if not isinstance(kind, Category | Date)]
        answers_to = _written(output, files, json=json, numbers=numbers, arms=rule.arms)
        with answers_to as write, phases(quiet) as watch:
            update, begun = watch("recommending"), time.perf_counter()
            sheets = _alike(sheet for file in files for sheet in read_blocks(file, separator))
            noted: dict[str, Any] = {"unknown": unknown, "new": new}
            answer = partial(_answered, rule, eligible=eligible, bounds=bounds, **noted)
            for count, (sheet, answers) in enumerate(_in_threads(answer, sheets), start=1):
                write(sheet, answers)
                times.update(map(str, answers["arm"]))
                update(done := times.total(), max(rows, done))
                seconds = (time.perf_counter() - begun) * rows / max(done, 1)
                if count == CORES and seconds > terminal.LONG and not out.quiet:
                    err.print(f"{rows:,} rows: about {seconds:.0f} s")
    if unknown:
        say_warning(
            f"--eligible {','.join(eligible or ())} names arms that the policy does not have, "
            f"which were passed over: {', '.join(map(repr, sorted(unknown)[:_NAMED]))}"
        )
    if new:
        say_warning(
            f"new levels, which the policy never met: {', '.join(sorted(new)[:_NAMED])}; the "
            f"status of their rows is {'new_level' if rule.fallback is None else 'outside'}"
        )
    if output is None or json:
        return
    shown = [[str(arm), times[str(arm)]] for arm in rule.arms if str(arm) in times]
    print_table(f"{times.total()} recommendations", ["arm", "times"], shown)
    kind = kind_of_bounds(rule.probability) if bounds else "left out"
    out.print(f"bounds: {kind}\nwritten to {output}")


def _alike(sheets: Iterator[Sheet]) -> Iterator[Sheet]:
    first = None
    for sheet in sheets:
        first = first or sheet
        check_alike(first, sheet)
        yield sheet


def _in_threads(
    answer: Callable[[Sheet], Answers], sheets: Iterable[Sheet]
) -> Iterator[tuple[Sheet, Answers]]:
    """Yield tables and their answers in order, while others are read and answered."""
    waiting: deque[tuple[Sheet, Future[Answers]]] = deque()
    from contextgap.studies.experiments.run import one_thread

    with one_thread(), ThreadPoolExecutor(CORES) as pool:
        for sheet in sheets:
            waiting.append((sheet, pool.submit(answer, sheet)))
            if len(waiting) > CORES:
                first, answers = waiting.popleft()
                yield first, answers.result()
        for last, answers in waiting:
            yield last, answers.result()


def _answered(
    rule: Policy,
    sheet: Sheet,
    *,
    eligible: list[str] | None,
    bounds: bool,
    unknown: set[str],
    new: set[str],
) -> Answers:
    rows = encoded_in(sheet, rule)
    among = None if eligible is None else eligible_arms(sheet, eligible, rule.arms, unknown)
    answered = rule.answered(rows, among, bounds)
    arms = [arm if isinstance(arm, int | float) else str(arm) for arm in answered.arms.tolist()]
    columns: Answers = {"arm": arms}
    columns["status"] = [Status(each).name.lower() for each in answered.status.tolist()]
    table = rule.state.schema.table
    found = {} if table is None else table.new_levels(rows.rows, sheet.cells_of)
    new.update(found.values())
    if rule.fallback is None:  # it would have been answered
        for place in found:
            columns["status"][place] = "new_level"
    if answered.certificate is not None:
        columns["regret_bound"] = answered.certificate.bound.tolist()
        columns["bound"] = [kind_of_bounds(answered.certificate.probability)] * len(sheet)
    return columns


@contextmanager
def _written(
    path: Path | None,
    files: Sequence[Path],
    *,
    json: bool,
    numbers: Sequence[str],
    arms: Sequence[Label],
) -> Iterator[Write]:
    """Give what writes a block and its answers: to a file, in the format of its name, or as CSV.

    ``numbers`` are the columns known to be numbers, and ``arms`` those that may be answered.
    """
    separator = "\t" if path is not None and suffix_of(path) == ".tsv" else None
    if json:
        yield from _json(sys.stdout)
    elif path is None:
        yield _text(sys.stdout)
    elif suffix_of(path) in PARQUET:
        with whole_file(path) as file:
            yield from _parquet(file, _kept_types(files, numbers), arms)
    elif path.suffix.lower() == ".gz":
        with whole_file(path) as file, gzip.open(file, "wt", 9, "utf-8", newline="") as text:
            yield _text(text, separator)
    else:
        with whole_file(path, text=True) as text:
            yield _text(text, separator)


def _names(columns: Sequence[str], answers: Answers) -> list[str]:
    """Return names that no column has; the others stay if only ``status`` is taken."""
    own, taken = list(answers), set(columns)
    renamed = {"status"} if taken & set(own) == {"status"} else set(own)
    added = own
    while taken & set(added):
        pairs = zip(own, added, strict=True)
        added = [f"recommended_{name}" if each in renamed else name for each, name in pairs]
    return added


def _text(file: IO[str], separator: str | None = None) -> Write:
    writer, header = None, list[str]()

    def write(sheet: Sheet, answers: Answers) -> None:
        nonlocal writer
        if writer is None:
            writer = csv.writer(file, delimiter=separator or sheet.separator or ",")
            header.extend(sheet.columns)
            writer.writerow([*header, *_names(header, answers)])
        cells = map(sheet.cells_of, header)  # perhaps in another order
        added = list(answers.values())
        if sheet.decimal_comma and separator is None:
            added = [
                [
                    str(cell).replace(".", ",") if isinstance(cell, float) else cell
                    for cell in column
                ]
                for column in added
            ]
        writer.writerows(zip(*cells, *added, strict=True))

    return write


def _parquet(file: IO[bytes], kept: Mapping[str, Any], arms: Sequence[Label]) -> Iterator[Write]:
    """Give what writes row groups; what has no type is text."""
    arrow, parquet = study_import("pyarrow"), study_import("pyarrow.parquet")
    types = {"arm": _arm_type(arrow, arms), "regret_bound": arrow.float64()}
    writer = None

    def write(sheet: Sheet, answers: Answers) -> None:
        nonlocal writer
        if writer is None:
            added = zip(_names(sheet.columns, answers), answers, strict=True)
            fields = [(name, kept.get(name, arrow.string())) for name in sheet.columns]
            fields += [(name, types.get(each, arrow.string())) for name, each in added]
            writer = parquet.ParquetWriter(file, arrow.schema(fields))
        schema = writer.schema
        cells = [*map(sheet.cells_of, schema.names[: len(sheet.columns)]), *answers.values()]
        arrays = [
            _array(arrow, column, field.type, sheet.decimal_comma)
            for column, field in zip(cells, schema, strict=True)
        ]
        writer.write_batch(arrow.record_batch(arrays, schema=schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arm_type(arrow: Any, arms: Sequence[Label]) -> Any:
    if label_array(arms, np.arange(0)).dtype != np.object_:
        return arrow.int64()
    return arrow.float64() if all(type(arm) in (int, float) for arm in arms) else arrow.string()


def _kept_types(files: Sequence[Path], numbers: Sequence[str]) -> dict[str, Any]:
    """Return the types of columns; 007 in text is not 7."""
    arrow, parquet = study_import("pyarrow"), study_import("pyarrow.parquet")
    if any(suffix_of(path) not in PARQUET for path in files):
        return dict.fromkeys(numbers, arrow.float64())
    schemas = [parquet.read_schema(path).remove_metadata() for path in files]
    try:
        schema = arrow.unify_schemas(schemas, promote_options="permissive")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the files have columns of the same name that hold different things ({error}); "
            "output that ends in .csv takes both"
        ) from error
    return {field.name: field.type for field in schema}


def _array(arrow: Any, cells: list[Any], kind: Any, decimal_comma: bool) -> Any:
    if arrow.types.is_floating(kind) and not set(map(type, cells)) <= {float, type(None)}:
        numbers = [to_number(cell, decimal_comma=decimal_comma) for cell in cells]
        cells = [
            None if is_missing_number(cell) else n for cell, n in zip(cells, numbers, strict=True)
        ]
    if arrow.types.is_string(kind):
        cells = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in cells]
    return arrow.array(cells, kind)


def _json(file: IO[str]) -> Iterator[Write]:
    """Give what writes an array of objects, as ``print_json`` would."""
    before = "["

    def write(_: Sheet, answers: Answers) -> None:
        nonlocal before
        for row in zip(*answers.values(), strict=True):
            text = js.dumps(plain(dict(zip(answers, row, strict=True))), indent=1, allow_nan=False)
            file.write(before + "\n " + text.replace("\n", "\n "))
            before = ","

    yield write
    file.write("\n]\n")


_ALARM = 3


def watch_command(
    policy: PolicyFile,
    contexts: ContextFiles,
    failure_probability: Annotated[
        float, typer.Option(help="Accepted probability of a false alarm in a whole deployment.")
    ] = 0.05,
    block: Annotated[
        int,
        typer.Option(help="Consecutive rows that form one unit, for rows in time order.", min=1),
    ] = 1,
    baseline: Annotated[
        Path | None,
        typer.Option(help="A table to compare with, if not the contexts that were learnt from."),
    ] = None,
    eligible: EligibleColumn = None,
    figure: Annotated[Path | None, typer.Option(help="A .png or .svg file to draw.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="A .cgap file: go on with the watch in it, if there is one; keep it."),
    ] = None,
    separator: Separator = None,
) -> Iterator[Any]:
    """Test whether contexts are like those learnt from; exit status 3 if they are not."""
    rule = Policy.load(policy)
    from contextgap.insight import plot
    from contextgap.insight.watch import Watch

    if state is None or not state.exists():
        given = None if baseline is None else _whole(baseline, rule, separator)
        watch = rule.watch(failure_probability, block=block, baseline=given)
    else:
        watch = Watch.load(state, rule)
        if (watch.failure_probability, watch.block) != (failure_probability, block):
            raise ValueError(
                f"the watch in {state} has failure probability {watch.failure_probability:g} "
                f"and blocks of {watch.block} rows"
            )
    unknown: set[str] = set()
    for file in files_named(contexts):
        for sheet in read_blocks(file, separator):
            among = eligible and eligible_arms(sheet, eligible, rule.arms, unknown)
            watch.see(encoded_in(sheet, rule), eligible=among)
    if state is not None:
        watch.save(state)
    if figure is not None:
        study_import("matplotlib").use("Agg")
        drawn: Any = plot.watch(watch)[0].figure
        drawn.savefig(figure)
    report = watch.report()
    yield Answer(report.describe(), 0 if report.alarm is None else _ALARM)
    out.print(str(report))


def learn_command(
    log: Annotated[
        list[str],
        typer.Argument(
            help=".csv, .tsv, .parquet or .jsonl files, Vowpal Wabbit's .vw and .dsjson, .gz of "
            'these, or "logs/*.parquet"; - for the standard input. A trial per row.'
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Policy file to write.")],
    arm: Annotated[str, typer.Option(help="Column with the arm tried.")] = "arm",
    reward: Annotated[str, typer.Option(help="Column with the reward it gave.")] = "reward",
    context: Annotated[
        list[str] | None,
        list_option("Context columns, comma-separated; all others by default."),
    ] = None,
    *,
    columns: ColumnOptions,
    separator: Separator = None,
    skip_missing: SkipMissing = False,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="The reward is a cost, to be kept low.")
    ] = False,
    method: Annotated[
        str, typer.Option(help=f"The method whose deployment rule is used: {', '.join(METHODS)}.")
    ] = "auto",
    bandwidth: Bandwidth = None,
    ridge: Annotated[
        float | None, typer.Option(help="Variance of the noise; learnt by default.")
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Half width of intervals in standard deviations.")
    ] = 2.0,
    propensity: Annotated[
        str | None,
        typer.Option(help="Column with the probability with which the logged arm was chosen."),
    ] = None,
    censored: Annotated[
        str | None,
        typer.Option(help="Column with 1 where the true cost is higher, or the true reward lower."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="Column with what the trial cost, for the score card.")
    ] = None,
    eligible: EligibleColumn = None,
    arm_features: Annotated[
        Path | None,
        typer.Option(help="File with a row of features for each arm, in a column named as --arm."),
    ] = None,
    fallback: SafeArm = None,
    tolerance: Most = None,
    points: Annotated[
        int,
        typer.Option(help="Inducing points where trials are many; 0 for exact beliefs.", min=0),
    ] = POINTS,
    card_rows: CardRows = None,
    seed: AnySeed = 0,
    dask: Dask = None,
) -> Iterator[Any]:
    """Make a policy from logged trials."""
    with from_standard_input(log) as files:
        check_output(output, [*files, *([] if arm_features is None else [arm_features])])
        if all(suffix_of(path) in VOWPAL for path in files):
            propensity = propensity or "propensity"
            listed = all("eligible" in next(read_blocks(path)).columns for path in files)
            eligible = eligible or (["eligible"] if listed else None)
        trials = Trials(
            arm=arm,
            reward=reward,
            context=None if context is None else tuple(context),
            exclude=tuple(columns.exclude or ()),
            propensity=propensity,
            censored=censored,
            cost=cost,
            eligible=tuple(eligible or ()),
            kinds=columns.kinds,
            missing=tuple(columns.missing or ()),
        )
        how = {"width": PosteriorWidth(scale), "seed": seed, "points": points or None}
        how |= {"reward": "minimize"} if minimize else {}
        partitions = partitions_of(files, separator)
        quick = sum(each.size for each in partitions) <= SAMPLE
        remote = nullcontext() if dask is None else cluster(dask)
        with phases(quiet=quick) as watch, remote as client, noting_warnings():
            learnt = learn_trials(
                partitions,
                trials,
                method,
                lambda table: how | _settings(table, trials, bandwidth, ridge),
                points=points or None,
                skip_missing=skip_missing,
                features=None if arm_features is None else read_features(arm_features, arm),
                fallback=fallback,
                tolerance=tolerance,
                card_rows=card_rows,
                executor=client,
                progress=watch,
                prefix="--",
            )
        policy, tuning = learnt.policy, learnt.tuning
        policy.save(output)
    described_tuning = None if tuning is None else tuning.describe()
    yield {**described(policy), "tuning": described_tuning, "policy": str(output)}
    names = Path(log[0]).name if len(log) == 1 else f"{len(log)} files"
    names = "the standard input" if log == ["-"] else names
    print_settings(f"learnt from {learnt.rows} trials in {names}", policy)
    if tuning is not None:
        rows = []
        for each in tuning.candidates:
            mark = "chosen" if each.name == tuning.chosen else ""
            rows.append([each.name, each.advantage, f"{100 * each.explained:.1f} %", mark])
        print_table("models tried", ["model", "nats", "explained", ""], rows)
        out.print(f"{tuning.chosen}: {tuning.reason}", soft_wrap=False)
    print_card(policy)
    out.print(f"policy: {output}")


@contextmanager
def from_standard_input(log: list[str]) -> Iterator[list[Path]]:
    """Give the named files, or one with the standard input."""
    if log != ["-"]:
        yield files_named(log)
        return
    given = sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"standard-input{_kind_of(given)}")
        path.write_bytes(given)
        yield [path]


def _kind_of(given: bytes) -> str:
    if given[:2] == b"\x1f\x8b":
        return f"{_kind_of(gzip.decompress(given))}.gz"
    if given[:4] == b"PAR1":
        return ".parquet"
    first = given.lstrip().partition(b"\n")[0]
    if first.startswith(b"{"):
        return ".dsjson" if b'"_label_cost"' in first else ".jsonl"
    return ".vw" if re.match(rb"(shared|[0-9]+:\S+:\S+|)\s*\|", first) else ".csv"


def _settings(
    table: Any, trials: Trials, bandwidth: float | None, ridge: float | None
) -> dict[str, Any]:
    how = columns_for(table, trials)
    if bandwidth is None and ridge is None:
        return how
    if how:
        raise ValueError(
            "hyperparameters are learnt where columns are named by --category, --cyclic or "
            "--missing; leave out --bandwidth and --ridge"
        )
    kernel = Gaussian.from_contexts(table)
    if bandwidth is not None:
        kernel = replace(kernel, bandwidth=bandwidth)
    return {"kernel": kernel, "ridge": ridge, "prior_mean": "auto"}


_ROWS = 120
_CELLS = [
    (
        "markdown",
        """# Which cooling to use when

`trials.csv` has a row for each trial: what was known before (temperature, load, mode), the
cooling that was tried, and how well that went. Replace it by trials of your own.""",
    ),
    (
        "code",
        """import pandas as pd

import contextgap as cg

trials = pd.read_csv("trials.csv")
contexts = trials[["temperature", "load", "mode"]]
learner = cg.Learner(sorted(trials["arm"].unique()), seed=0)
learner.fit(contexts, trials["arm"], trials["reward"])""",
    ),
    ("markdown", "How good would it be to decide by what was learnt?"),
    ("code", "policy = learner.freeze()\nprint(policy.card)"),
    ("markdown", "The same in a few words, for people:"),
    ("code", "print(policy.rules())"),
    ("markdown", "What to do now, and how sure that is:"),
    (
        "code",
        """now = {"temperature": 31.0, "load": 0.7, "mode": "eco"}
print(policy.decide(now))
policy.save("policy.cgap")""",
    ),
    ("markdown", "What to try next, to learn more:"),
    ("code", "trial = learner.trial(now)\nprint(trial.arm)\n# learner.tell(trial, reward)"),
]


def init_command(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")] = Path(),
) -> Iterator[Any]:
    """Write a small project into an empty folder: trials.csv, explore.py and explore.ipynb."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    _write_trials(folder / "trials.csv")
    for name, text in (("explore.py", _script()), ("explore.ipynb", _notebook())):
        with whole_file(folder / name, text=True) as file:
            file.write(text)
    written = [str(folder / name) for name in ("trials.csv", "explore.py", "explore.ipynb")]
    enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    yield {"written": written}
    out.print(f"wrote {', '.join(written)}\nnext: {enter}python explore.py")


def _write_trials(path: Path) -> None:
    rng = np.random.default_rng(0)
    with whole_file(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["temperature", "load", "mode", "arm", "reward"])
        for _ in range(_ROWS):
            warm, load = round(rng.uniform(10, 40), 1), round(rng.uniform(), 2)
            mode, arm = str(rng.choice(["eco", "fast"])), str(rng.choice(["air", "fan", "water"]))
            value = {
                "air": 1.0 - warm / 40,
                "fan": 0.6 - (0.3 if mode == "eco" else 0.0),
                "water": warm / 50 + 0.2 * load,
            }[arm]
            writer.writerow([warm, load, mode, arm, round(value + 0.05 * rng.normal(), 3)])


def _script() -> str:
    parts = []
    for kind, text in _CELLS:
        lines = text.splitlines()
        notes = (f"# {line.removeprefix('# ')}".rstrip() for line in lines)
        parts.append(text if kind == "code" else "\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _notebook() -> str:
    cells: list[dict[str, Any]] = []
    for place, (kind, text) in enumerate(_CELLS):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}}
        cell["source"] = text.splitlines(keepends=True)
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return js.dumps(whole, indent=1) + "\n"
