"""The command that recommends an arm for every row of a table, block by block.

Tables are written with the answers to their rows: as text, Parquet or JSON.
"""

from __future__ import annotations

import csv
import gzip
import json as js
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

from contextgap.base.files import check_output, whole_file
from contextgap.base.labels import Label, check_written, label_array
from contextgap.base.names import study_import
from contextgap.cli.options import CORES, Json, Separator
from contextgap.cli.policies import EligibleColumn, PolicyFile, kind_of_bounds
from contextgap.cli.tables import encoded_in
from contextgap.cli.terminal import (
    Forecast,
    complaints,
    out,
    phases,
    plain,
    print_table,
    say_warning,
)
from contextgap.policy import Policy, Status
from contextgap.studies.experiments.tasks import one_thread
from contextgap.tables.cells import is_missing_number, to_number
from contextgap.tables.columns import Category, Date
from contextgap.tables.files import (
    BLOCK,
    PARQUET,
    RECORDS,
    Sheet,
    check_alike,
    count_rows,
    files_named,
    read_blocks,
)
from contextgap.tables.logs import suffix_of
from contextgap.tables.trials import eligible_arms

Answers: TypeAlias = dict[str, list[Any]]  # columns of what is answered
Write: TypeAlias = Callable[[Sheet, Answers], None]
_NAMED = 5  # arms or levels in a warning
_NOT_WRITTEN = (".feather", ".json", ".ods", ".xls", ".xlsx", *RECORDS)


def recommend_command(
    policy: PolicyFile,
    contexts: Annotated[
        list[str],
        typer.Argument(help='.csv, .tsv or .parquet files, or "logs/*.csv"; a context per row.'),
    ],
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
    """Recommend an arm for every row; the file's own columns are kept."""
    times: Counter[str] = Counter()
    unknown: set[str] = set()
    new: set[str] = set()
    with complaints():
        if output is not None:
            _check_answers(output, json=json)
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
    out.print(f"bounds: {kind}\nwritten to {output}", soft_wrap=True)


def _alike(sheets: Iterator[Sheet]) -> Iterator[Sheet]:
    """Yield tables; raise where one has other columns than the first."""
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
    """Return the answers to the rows of a table, by column."""
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


def _check_answers(path: Path, *, json: bool) -> None:
    """Raise if answers cannot be written to a file of this name."""
    if json:
        raise ValueError(f"--json prints the answers, and nothing is written to {path}; leave one")
    suffix = suffix_of(path)
    if suffix in _NOT_WRITTEN or (suffix in PARQUET and path.suffix.lower() == ".gz"):
        raise ValueError(f"{path}: known are .csv, .tsv and .parquet files, and .gz of text")


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
            added = [[_with_comma(cell) for cell in column] for column in added]
        writer.writerows(zip(*cells, *added, strict=True))

    return write


def _with_comma(cell: Any) -> Any:
    return str(cell).replace(".", ",") if isinstance(cell, float) else cell


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
    """Return the type of a column of arms: numbers if all of them are."""
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
