"""The command that recommends an arm for every row of a table, block by block."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.files import check_output
from contextgap.base.labels import check_written
from contextgap.cli.answers import Answers, check_answers, written
from contextgap.cli.options import CORES, Json, Separator
from contextgap.cli.policies import EligibleColumn, PolicyFile, kind_of_bounds
from contextgap.cli.tables import encoded_in, new_levels
from contextgap.cli.terminal import Forecast, complaints, out, phases, print_table, say_warning
from contextgap.policy import Policy, Status
from contextgap.studies.experiments.tasks import one_thread
from contextgap.tables.columns import Category, Date
from contextgap.tables.files import BLOCK, Sheet, check_alike, count_rows, files_named, read_blocks
from contextgap.tables.trials import eligible_arms

_NAMED = 5  # arms or levels in a warning


def recommend_command(
    policy: PolicyFile,
    contexts: Annotated[
        list[str],
        typer.Argument(help='.csv, .tsv or .parquet files, or "logs/*.csv"; a context per row.'),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .csv, .tsv or .parquet file; CSV to stdout if left out."
        ),
    ] = None,
    bounds: Annotated[
        bool, typer.Option(help="Whether to bound each arm's regret, which takes longer.")
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
            check_answers(output, json=json)
            check_output(output, [policy])
        rule = Policy.load(policy)
        files = files_named(contexts)
        rows = sum(map(count_rows, files))
        # A bar would stand among the answers, or be gone at once.
        quiet = (output is None and sys.stdout.isatty()) or rows <= BLOCK
        check_written(rule.arms)
        kinds = (rule.kinds or {}).items()
        numbers = [name for name, kind in kinds if not isinstance(kind, Category | Date)]
        answers_to = written(output, files, json=json, numbers=numbers, arms=rule.arms)
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
    """Yield tables and their answers in order, while the next ones are read and answered.

    Every thread computes alone: BLAS would leave cores idle while tables are read and written.
    """
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
    plain = [arm if isinstance(arm, int | float) else str(arm) for arm in answered.arms.tolist()]
    columns: Answers = {"arm": plain}
    columns["status"] = [Status(each).name.lower() for each in answered.status.tolist()]
    found = new_levels(rule.state.schema.table, rows.rows, sheet.cells_of)
    new.update(found.values())
    if rule.fallback is None:  # it would have been answered
        for place in found:
            columns["status"][place] = "new_level"
    if answered.certificate is not None:
        columns["regret_bound"] = answered.certificate.bound.tolist()
        columns["bound"] = [kind_of_bounds(answered.certificate.probability)] * len(sheet)
    return columns
