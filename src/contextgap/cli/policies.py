"""The commands about policies in files: show, recommend and watch.

Tables are read block by block, and written with the answers to their rows: as text, Parquet or
JSON.
"""

from __future__ import annotations

import csv
import gzip
import json as js
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, TypeAlias

import numpy as np
import typer

from contextgap.base.checks import Label, check_written, label_array
from contextgap.base.components import Component, study_import
from contextgap.base.files import check_output, whole_file
from contextgap.cli.options import (
    CORES,
    Answer,
    ColumnOptions,
    Json,
    Separator,
    list_option,
)
from contextgap.cli.terminal import (
    Forecast,
    complaints,
    noting_warnings,
    out,
    phases,
    plain,
    print_table,
    say_warning,
)
from contextgap.insight.learnt import bandwidths_by_column
from contextgap.policy import Policy, Status
from contextgap.tables.columns import Category, Columns, Cyclic, Date
from contextgap.tables.contexts import Encoded
from contextgap.tables.files import (
    BLOCK,
    PARQUET,
    RECORDS,
    Sheet,
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
    """Return in words how far bounds can be trusted."""
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
    """A part as Python shows it, its numbers to four digits."""
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
    """Return bandwidths by column; the last is that of missing values, where there may be any."""
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
    """Whether there are rewards enough to leave one out."""
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
    """Return a table's contexts as a policy's kernel takes them; errors name the file."""
    table = _table(sheet, policy)
    try:
        return Encoded(policy.state.read(table)[0], policy.state.schema)
    except (TypeError, ValueError) as error:
        raise ValueError(sheet.located(error)) from None


def _whole(path: Path, policy: Policy, separator: str | None) -> Encoded:
    """Return all contexts of a table."""
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
    """Return the contexts in a file, and what they hold; None unless the user said something of it.

    ``columns`` are those of a context, all by default; a name that is mistyped is an error.
    """
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


Answers: TypeAlias = dict[str, list[Any]]  # columns of what is answered
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
            update, forecast = watch("recommending"), Forecast(rows, CORES)
            sheets = _alike(sheet for file in files for sheet in read_blocks(file, separator))
            noted: dict[str, Any] = {"unknown": unknown, "new": new}
            answer = partial(_answered, rule, eligible=eligible, bounds=bounds, **noted)
            for sheet, answers in _in_threads(answer, sheets):
                write(sheet, answers)
                times.update(map(str, answers["arm"]))
                forecast(done := times.total())
                update(done, max(rows, done))
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
    """Yield tables and their answers in order, while the next ones are read and answered."""
    waiting: deque[tuple[Sheet, Future[Answers]]] = deque()
    from contextgap.studies.experiments.run import one_thread  # slow to load

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
    """Give what writes a block and its answers: to a file, or to the standard output.

    The name of the file says in which format; it is CSV unless it ends otherwise, with the
    separator of the first file that is read.
    ``files`` are those that blocks are read from, ``numbers`` the columns in them that are known
    to be numbers; ``arms`` are those that may be answered.
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
    """Return names that no column has; other names stay if only ``status`` is taken."""
    own, taken = list(answers), set(columns)
    renamed = {"status"} if taken & set(own) == {"status"} else set(own)
    added = own
    while taken & set(added):
        pairs = zip(own, added, strict=True)
        added = [f"recommended_{name}" if each in renamed else name for each, name in pairs]
    return added


def _text(file: IO[str], separator: str | None = None) -> Write:
    """Return what writes the table, in its own format unless a separator is given, with answers."""
    writer, header = None, list[str]()

    def write(sheet: Sheet, answers: Answers) -> None:
        nonlocal writer
        if writer is None:
            writer = csv.writer(file, delimiter=separator or sheet.separator or ",")
            header.extend(sheet.columns)
            writer.writerow([*header, *_names(header, answers)])
        cells = map(sheet.cells_of, header)  # another file may have them in another order
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
    """Give what writes the same columns as row groups; all that has no type is text."""
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
    """Return the types of columns of Parquet files, or of ``numbers``; 007 in text is not 7."""
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
    """Give what writes answers as an array of objects, as ``print_json`` would write it whole."""
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
