"""Commands for campaigns in a database, their sheets of trials, their service and its tokens."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.base.checks import Written
from contextgap.base.files import check_output
from contextgap.cli.terminal import (
    Answer,
    AnySeed,
    Bandwidth,
    ColumnOptions,
    Commands,
    Json,
    Most,
    SafeArm,
    command,
    complaints,
    err,
    list_option,
    noting_warnings,
    out,
    print_json,
    print_table,
    say_error,
    say_warning,
)
from contextgap.kernels import Gaussian
from contextgap.learner import StoppingRule
from contextgap.tables.columns import Category, Date, Kind
from contextgap.tables.table import is_empty, is_missing_number, no_number, to_number

if TYPE_CHECKING:
    from contextgap.tables.files import Sheet

app = Commands("Run long explorations by several people or programs, logged in a database.")
# Numbers may be negative, and are no options.
_NUMBERS = {"ignore_unknown_options": True}

Where = Annotated[
    str,
    typer.Option(
        "--database",
        "-d",
        envvar="CONTEXTGAP_DATABASE",
        help="A SQLite file, or a URL such as postgresql://user@host/database.",
    ),
]
Which = Annotated[
    str | None,
    typer.Option(
        "--campaign",
        "-c",
        envvar="CONTEXTGAP_CAMPAIGN",
        help="The campaign; may be left out where there is only one.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(help="A name for the request; repeating it with the same key does nothing."),
]
By = Annotated[
    str | None,
    typer.Option(envvar="CONTEXTGAP_BY", help="Your name in the log; the user by default."),
]
Number = Annotated[int, typer.Argument(help="The trial's number.", min=1)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write it to this .cgap file.")
]
Why = Annotated[str, typer.Argument(help="The reason, for those who read the log.")]
FILE = "contextgap.db"


@dataclass(frozen=True)
class Place:
    database: Where = FILE
    campaign: Which = None


@dataclass(frozen=True)
class Changing(Place):
    by: By = None


@contextmanager
def opened(place: Place) -> Iterator[Any]:
    with database_complaints():
        from contextgap.team.campaign import Campaign

        database, name = place.database, place.campaign
        by = place.by if isinstance(place, Changing) else None
        if name is None:
            names = Campaign.names(database)
            if len(names) != 1:
                there = ", ".join(names) or "none; contextgap campaign create makes one"
                raise ValueError(f"name the campaign by --campaign; in {database} there is {there}")
            (name,) = names
        with Campaign.open(database, name, by=by) as campaign, noting_warnings():
            yield campaign


@contextmanager
def database_complaints() -> Iterator[None]:
    with complaints():
        try:
            from sqlalchemy.exc import SQLAlchemyError
        except ImportError:
            raise ImportError(
                "campaigns need sqlalchemy; pip install 'contextgap[campaign]' brings it"
            ) from None
        try:
            yield
        except SQLAlchemyError as error:
            raise OSError(f"the database says: {getattr(error, 'orig', None) or error}") from None


@app.add("create")
def create_command(
    name: Annotated[str, typer.Argument(help="A name for the campaign.")],
    arms: Annotated[list[str], list_option("The arms to choose from, comma-separated.")],
    database: Where = FILE,
    reference: Annotated[
        Path | None,
        typer.Option(help="A file of contexts like those to deploy on, a context per row."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The regret at which one of them is settled, such as 0.1.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="The share of them to be settled; 0.95 if left out.")
    ] = None,
    *,
    columns: ColumnOptions,
    lease: Annotated[
        float, typer.Option(help="Days after which a pick without a reward stops counting.")
    ] = 7.0,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Rewards are costs, to be kept low.")
    ] = False,
    method: Annotated[str, typer.Option(help="How to explore and deploy.")] = "auto",
    bandwidth: Bandwidth = None,
    ridge: Annotated[float | None, typer.Option(help="Learnt if no bandwidth is given.")] = None,
    seed: AnySeed = 0,
    by: By = None,
) -> Iterator[Any]:
    """Begin a campaign."""
    with database_complaints():
        from contextgap.team.campaign import Campaign

        how: dict[str, Any] = {"ridge": ridge}
        how["kernel"] = None if bandwidth is None else Gaussian(bandwidth)
        goal = None
        if reference is not None:
            from contextgap.cli.policies import described_table

            table, how["columns"] = described_table(reference, columns)
            goal = StoppingRule(tolerance or 0.0, 0.95 if share is None else share, reference=table)
        elif (tolerance, share, columns) != (None, None, ColumnOptions()):
            raise ValueError(
                "--tolerance, --share, --exclude, --category, --cyclic and --missing are about the "
                "contexts of --reference FILE"
            )
        campaign = Campaign.create(
            database,
            name,
            arms,
            goal=goal,
            lease=86_400 * lease,
            method=method,
            seed=seed,
            reward="minimize" if minimize else "maximize",
            by=by,
            **{setting: value for setting, value in how.items() if value is not None},
        )
        labels = campaign.arms
        campaign.close()
    yield {"campaign": name, "arms": list(labels)}
    out.print(f"campaign {name}: {', '.join(map(str, labels))}")


@app.add("ask", context_settings=_NUMBERS)
def ask_command(
    cells: Annotated[
        list[str], typer.Argument(help="The context: temperature=21.5 mode=eco, or 0.3 0.7.")
    ],
    place: Changing,
    among: Annotated[
        list[str] | None, list_option("The eligible arms, comma-separated; all by default.")
    ] = None,
    lease: Annotated[float | None, typer.Option(help="Days that the pick counts.")] = None,
    key: Key = None,
) -> Iterator[Any]:
    """Choose the arm to try at a context, and open a trial."""
    with opened(place) as current:
        learner = current.learner()
        trial = current.ask(
            read_cells(cells, learner.columns),
            arms=None if among is None else [read_arm(arm, current) for arm in among],
            lease=None if lease is None else 86_400 * lease,
            key=key,
        )
        say_new_levels(learner, [trial])
    yield from show_trial(trial)


@app.add("tell", context_settings=_NUMBERS)
def tell_command(
    words: Annotated[
        list[str], typer.Argument(help="The trial's number and the reward; with --arm, the reward.")
    ],
    place: Changing,
    arm: Annotated[
        str | None, typer.Option(help="For outside data, without a trial: the arm tried.")
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(help="For outside data: a cell, such as temperature=21.5.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="The reward's standard error.")] = None,
    cost: Annotated[float | None, typer.Option(help="What the trial cost.")] = None,
    censored: Annotated[
        bool,
        typer.Option(
            "--censored",
            help="The true cost is at least, or the true reward at most, the given one.",
        ),
    ] = False,
    key: Key = None,
) -> Iterator[Any]:
    """Record the reward of a trial, or of outside data without a trial."""
    about: dict[str, Any] = {"noise": noise, "censored": censored or None, "key": key, "cost": cost}
    with opened(place) as current:
        if arm is None:
            if len(words) != 2 or not words[0].isdecimal() or context:
                raise ValueError(f"tell takes a trial and its reward, such as 17 0.5, got {words}")
            trial = current.tell(int(words[0]), read_reward(words[1]), **about)
        else:
            if len(words) != 1 or not context:
                raise ValueError("tell --arm takes a reward and --context for each cell")
            trial = current.tell(
                contexts=read_cells(context, current.learner().columns),
                arms=read_arm(arm, current),
                reward=read_reward(words[0]),
                **about,
            )
    yield from show_trial(trial)


@app.add("cancel")
def cancel_command(trial: Number, place: Changing) -> Iterator[Any]:
    """Cancel an open trial."""
    with opened(place) as current:
        found = current.cancel(trial)
    yield from show_trial(found)


@app.add("status")
def status_command(place: Place) -> Iterator[Any]:
    """Show trials, rewards, progress and score of a campaign."""
    with opened(place) as current:
        status, policies = current.status(), current.policies()
    yield {**status.describe(), "policies": [vars(policy) for policy in policies]}
    print_table(f"campaign {status.name}", ["", "value"], status.rows())
    if policies:
        rows = [
            [each.name, each.at[:19], ", ".join(map(str, each.recalled)) or "none"]
            for each in policies
        ]
        print_table("frozen policies", ["name", "frozen (UTC)", "rests on trials changed"], rows)


@app.add("trials")
def trials_command(
    place: Place,
    state: Annotated[
        list[str] | None,
        list_option("Only open, told, cancelled, expired or retracted ones; several by a,b."),
    ] = None,
) -> Iterator[Any]:
    """List trials."""
    with opened(place) as current:
        trials = current.find_trials(state)
    yield [described(trial) for trial in trials]
    rows = [
        [each.id, each.state, each.arm, _text(each.reward), _cells(each), each.by or ""]
        for each in trials
    ]
    headers = ["trial", "state", "arm", "reward", "context", "by"]
    print_table(f"{len(trials)} trials", headers, rows)


@app.add("retract")
def retract_command(
    trial: Number,
    why: Why,
    place: Changing,
    key: Key = None,
) -> Iterator[Any]:
    """Take a reward back, and list the frozen policies that were learnt from it."""
    with opened(place) as current:
        recall = current.retract(trial, why, key=key)
    yield from show_recall(recall, "retracted")


@app.add("correct", context_settings=_NUMBERS)
def correct_command(
    trial: Number,
    reward: Annotated[str, typer.Argument(help="The right reward.")],
    why: Why,
    place: Changing,
    key: Key = None,
) -> Iterator[Any]:
    """Replace a reward by the right one, and say which frozen policies rest on it."""
    with opened(place) as current:
        recall = current.correct(trial, read_reward(reward), why, key=key)
    yield from show_recall(recall, "corrected")


@app.add("freeze")
def freeze_command(
    name: Annotated[str, typer.Argument(help="A name for the policy.")],
    place: Changing,
    output: Output = None,
    fallback: SafeArm = None,
    tolerance: Most = None,
    key: Key = None,
) -> Iterator[Any]:
    """Freeze a policy, and keep it in the campaign."""
    with opened(place) as current:
        safe = None if fallback is None else read_arm(fallback, current)
        _check_file(output, place.database)  # what is frozen stays frozen
        current.freeze(name, fallback=safe, tolerance=tolerance, key=key)
        found = _given(current, name, output)
    yield from _show(name, *found)


@app.add("policy")
def policy_command(
    name: Annotated[str, typer.Argument(help="The name of a frozen policy.")],
    place: Place,
    output: Output = None,
) -> Iterator[Any]:
    """Show a policy that was frozen before, or write it to a file again."""
    with opened(place) as current:
        _check_file(output, place.database)
        found = _given(current, name, output)
    yield from _show(name, *found)


def _check_file(output: Path | None, database: str) -> None:
    """Raise if a policy cannot be written there."""
    if output is not None:
        from contextgap.team.campaign.database import Database

        known = Database(database)
        check_output(output, [str(known.url.database)] if known.is_file else [])


def _given(campaign: Any, name: str, output: Path | None) -> tuple[Any, Any]:
    policy = campaign.policy(name)
    if output is not None:
        policy.save(output)
    return policy, next(each for each in campaign.policies() if each.name == name)


def _show(name: str, policy: Any, known: Any) -> Iterator[Any]:
    from contextgap.cli.policies import print_policy

    yield {**vars(known), "card": policy.card.describe()}
    print_policy(f"policy {name}", policy)


def read_cells(words: list[str], kinds: Mapping[str, Kind] | None = None) -> Any:
    """Return a context from name=value words, or from cells alone."""
    kinds = kinds or {}
    for word in words:
        if word.startswith("-") and to_number(word) is None:
            raise ValueError(f"there is no option {word.partition('=')[0]}")
    pairs = [word.partition("=") for word in words]
    if all(equals for _, equals, _ in pairs):
        names = [name.strip() for name, _, _ in pairs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"a context must name each column once, got {twice[0]!r} twice")
        cells = [cell for _, _, cell in pairs]
        named = zip(names, cells, strict=True)
        return {name: read_cell(cell, kinds.get(name)) for name, cell in named}
    if any(equals for _, equals, _ in pairs):
        raise ValueError(f"a context must be all name=value, or all numbers, got {words}")
    by_place = list(kinds.values()) if len(kinds) == len(words) else [None] * len(words)
    return [read_cell(word, kind) for word, kind in zip(words, by_place, strict=True)]


def say_new_levels(learner: Any, trials: Sequence[Any]) -> None:
    table = learner.state.schema.table
    if table is None:
        return
    cells = [[trial.context[name] for trial in trials] for name in table.columns]
    by_name = dict(zip(table.columns, cells, strict=True))
    found = table.new_levels(table.encode(cells, learning=False)[0], by_name.__getitem__)
    for level in dict.fromkeys(found.values()):
        say_warning(f"new level {level}; nothing is known of it yet")


def read_cell(word: str, kind: Kind | None = None) -> Any:
    number = None if isinstance(kind, Category | Date) else to_number(word)
    return word.strip() or None if number is None else number


def read_reward(word: str) -> float:
    number = to_number(word)
    if number is None:
        raise ValueError(f"the reward must be a number, such as 1 for yes, got {word!r}")
    return number


def read_arm(word: str, campaign: Any) -> Any:
    return Written(campaign.arms).read(word, word)


def described(trial: Any) -> dict[str, Any]:
    values = {name: value for name, value in vars(trial).items() if name != "id"}
    return {"trial": trial.id, **values}


def show_trial(trial: Any) -> Iterator[Any]:
    yield described(trial)
    reward = "" if trial.reward is None else f", reward {trial.reward:.6g}"
    # Without rich, which is slow to load.
    typer.echo(f"trial {trial.id}: {trial.arm} at {_cells(trial)}, {trial.state}{reward}")


def show_recall(recall: Any, what: str) -> Iterator[Any]:
    policies = [vars(policy) for policy in recall.policies]
    yield {"trial": recall.trial, what: True, "policies": policies}
    out.print(f"trial {recall.trial} {what}")
    if not recall.policies:
        out.print("no frozen policy rests on it")
        return
    rows = [[each.policy, f"{each.changed} of {each.contexts}"] for each in recall.policies]
    print_table("frozen policies that rest on it", ["policy", "decisions that would change"], rows)


def _cells(trial: Any) -> str:
    if isinstance(trial.context, dict):
        return " ".join(f"{name}={_text(cell)}" for name, cell in trial.context.items())
    return " ".join(map(_text, trial.context))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # how cells begin that are no plain text

ContextsFile = Annotated[
    Path | None, typer.Option(help="Try the first rows of this file, a context per row.")
]
PoolFile = Annotated[
    Path | None, typer.Option(help="Choose the contexts among those in this file.")
]


@app.add("sheet")
def sheet_command(
    place: Changing,
    count: Annotated[
        int | None, typer.Option("-n", help="How many new trials to ask for.", min=1)
    ] = None,
    contexts: ContextsFile = None,
    pool: PoolFile = None,
    once: Annotated[
        bool, typer.Option("--once", help="Never the same arm at the same context again.")
    ] = False,
    filled: Annotated[
        Path | None,
        typer.Option("--import", help="Tell the rewards in a sheet that was filled in."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what --import would tell.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before telling, on a terminal.")
    ] = False,
    json: Json = False,
) -> None:
    """Write trials as a CSV sheet to fill in, or read a filled-in sheet back.

    With -n the sheet has new trials; without it, the open ones.

    Contexts of new trials come from --contexts, or are chosen from --pool.

    The default pool is the reference contexts of the campaign.
    """
    with opened(place) as current:
        if filled is not None and (count, contexts, pool) != (None, None, None):
            raise ValueError("--import tells rewards; -n, --contexts and --pool ask for new trials")
        if filled is None and (dry_run or yes):
            raise ValueError("--dry-run and --yes are about --import FILE")
        if count is None and (contexts, pool, once) != (None, None, False):
            raise ValueError("--contexts, --pool and --once need -n, how many trials to ask for")
        if filled is not None:
            _import(current, filled, dry_run, yes, json)
            return
        if count is None:
            trials = current.find_trials("open")
        else:
            trials = _ask(current, count, contexts, pool, once)
        if json:
            print_json([described(trial) for trial in trials])
        else:
            _write(trials)


def _ask(
    campaign: Any, count: int, contexts: Path | None, pool: Path | None, once: bool
) -> list[Any]:
    from contextgap.tables.files import read_sheet

    if contexts is not None and pool is not None:
        raise ValueError("give --contexts or --pool, not both")
    if contexts is not None and once:
        raise ValueError("--once is about contexts that are chosen: give --pool, not --contexts")
    if contexts is not None:
        table = _table(campaign, read_sheet(contexts))
        if len(table) < count:
            raise ValueError(f"{contexts} has {len(table)} contexts, fewer than {count}")
        before = campaign.learner()
        trials = list(campaign.ask(table[:count]))
        say_new_levels(before, trials)
        return trials
    if pool is None and campaign.goal is None:
        raise ValueError(
            "give --contexts with the contexts to try, or --pool to choose some from: the campaign "
            "has no reference contexts"
        )
    choices = campaign.goal.given if pool is None else _table(campaign, read_sheet(pool))
    return [campaign.ask(pool=choices, once=once) for _ in range(count)]


def _table(campaign: Any, sheet: Sheet) -> Any:
    kinds = campaign.learner().columns
    return sheet.table(sheet.others([]) if kinds is None else list(kinds), kinds)


def _write(trials: list[Any]) -> None:
    from contextgap.team.campaign.values import context_cells

    cells = [context_cells(trial) for trial in trials]
    columns = list(dict.fromkeys(name for each in cells for name in each))
    writer = csv.writer(sys.stdout)
    writer.writerow(["trial", *map(_quoted, columns), "arm", "reward"])
    for trial, each in zip(trials, cells, strict=True):
        row = [each.get(name) for name in columns]
        shown = ["" if cell is None or cell != cell else _quoted(cell) for cell in row]
        writer.writerow([trial.id, *shown, _quoted(trial.arm), ""])


def _quoted(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _unquoted(cell: Any) -> Any:
    quoted = isinstance(cell, str) and cell[:1] == "'" and cell[1:].startswith(_FORMULA)
    return cell[1:] if quoted else cell


def _import(campaign: Any, path: Path, dry_run: bool, yes: bool, json: bool) -> None:
    from contextgap.tables.files import read_sheet

    sheet = read_sheet(path)
    cells = tuple([_unquoted(cell) for cell in column] for column in sheet.cells)
    sheet = replace(sheet, columns=tuple(map(_unquoted, sheet.columns)), cells=cells)
    told, known = _read(campaign, sheet)
    if not json:
        rows = [[trial.id, trial.arm, trial.state, repr(reward)] for trial, reward in told]
        headers = ["trial", "arm", "state", "reward"]
        print_table(f"{len(told)} rewards to tell, {len(known)} told before", headers, rows)
    if told and not dry_run:
        if err.is_terminal and sys.stdin.isatty() and not yes and not json:
            typer.confirm("Tell these?", abort=True)
        campaign.tell([trial.id for trial, _ in told], [reward for _, reward in told])
    if json:
        found = [{"trial": trial.id, "reward": reward} for trial, reward in told]
        print_json({"told": found, "told_before": known, "dry_run": dry_run})
    elif not dry_run:
        out.print(f"told {len(told)} rewards")


def _read(campaign: Any, sheet: Sheet) -> tuple[list[tuple[Any, float]], list[int]]:
    told, known = [], []
    seen: dict[int, str] = {}
    cells = zip(sheet.cells_of("trial"), sheet.cells_of("reward"), strict=True)
    for row, (number, cell) in enumerate(cells):
        if is_empty(cell):
            continue
        where = f"{sheet.path}, {sheet.places[row]}"
        reward = to_number(cell, decimal_comma=sheet.decimal_comma)
        if reward is None or not math.isfinite(reward):
            hint = "; write 1 for yes and 0 for no" if reward is None else ""
            raise ValueError(f"{where}, column 'reward': {no_number(cell)}{hint}")
        if not str(number).strip().isdecimal():
            raise ValueError(f"{where}, column 'trial': must be a trial's number, got {number!r}")
        try:
            trial = campaign.trial(int(number))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if trial.id in seen:
            raise ValueError(f"{where}: trial {trial.id} was in {seen[trial.id]} already")
        seen[trial.id] = sheet.places[row]
        _check_asked(trial, sheet, row)
        if trial.state in ("told", "retracted"):
            if trial.reward != reward:
                raise ValueError(
                    f"{where}: {trial.reward!r} was told for trial {trial.id}, not {reward!r}; "
                    "contextgap campaign correct changes it"
                )
            known.append(trial.id)
        else:
            told.append((trial, reward))
    return told, known


def _check_asked(trial: Any, sheet: Sheet, row: int) -> None:
    from contextgap.team.campaign.values import context_cells

    where = f"{sheet.path}, {sheet.places[row]}"
    if "arm" in sheet.columns:
        arm = sheet.cells_of("arm")[row]
        if not is_empty(arm) and not _same(trial.arm, arm, sheet.decimal_comma):
            raise ValueError(f"{where}: trial {trial.id} is of {trial.arm!r}, not of {arm!r}")
    for name, asked in context_cells(trial).items():
        cell = sheet.cells_of(name)[row] if name in sheet.columns else None
        if not is_empty(cell) and not _same(asked, cell, sheet.decimal_comma):
            raise ValueError(
                f"{where}, column {name!r}: trial {trial.id} was asked for at {asked!r}, not at "
                f"{cell!r}; tell a reward at another context by contextgap campaign tell --arm "
                "--context, or leave the column out"
            )


def _same(asked: Any, cell: Any, decimal_comma: bool) -> bool:
    if asked is None or asked != asked:
        return is_missing_number(cell)
    if isinstance(asked, bool):
        return str(cell).strip().lower() == str(asked).lower()
    if isinstance(asked, int | float):
        number = to_number(cell, decimal_comma=decimal_comma)
        # Spreadsheets save about nine digits.
        return number is not None and math.isclose(number, asked, rel_tol=1e-9, abs_tol=1e-9)
    return str(cell).strip() == str(asked).strip()


serve_app = typer.Typer(
    help="Serve campaigns over HTTP.", invoke_without_command=True, pretty_exceptions_enable=False
)
token_app = Commands("Tokens, with which programs may use the service.")
database_app = Commands(
    "Maintain a database of campaigns: status, upgrade, backup, restore, verify."
)
serve_app.add_typer(token_app, name="token")

Url = Annotated[
    str | None, typer.Argument(help="The database; by default that of --database.", metavar="URL")
]


@contextmanager
def _maintained(
    database: str, module: str = "campaign.store", *, existing: bool = False
) -> Iterator[tuple[Any, Any]]:
    with database_complaints():
        functions = import_module(f"contextgap.team.{module}")
        from contextgap.team.campaign.database import Database

        where = Database(database)
        if existing and not where.exists:
            raise FileNotFoundError(f"there is no database {where.url!r}")
        yield where, functions


_TOKENS = "service.access"


@dataclass(frozen=True)
class _Options:
    host: Annotated[
        str,
        typer.Option(help="The address to listen at; 0.0.0.0 for all addresses of this machine."),
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(help="The port to listen at; 0 is any free one.", min=0, max=65535)
    ] = 8000
    no_tokens: Annotated[
        bool,
        typer.Option("--no-tokens", help="Let everybody who reaches the service do everything."),
    ] = False
    tokens: Annotated[str, typer.Option(hidden=True)] = "required"
    allow_host: Annotated[
        list[str] | None,
        list_option("With --no-tokens: another name by which this machine may be called."),
    ] = None
    max_body: Annotated[int, typer.Option(help="Bytes of one request.", min=1)] = 8_000_000
    max_rows: Annotated[int, typer.Option(help="Contexts of one request.", min=1)] = 100_000
    max_columns: Annotated[int, typer.Option(help="Cells of one context.", min=1)] = 1000
    max_arms: Annotated[int, typer.Option(help="Arms of one campaign.", min=1)] = 1000
    connections: Annotated[int, typer.Option(help="Connections open at once.", min=1)] = 1000
    deadline: Annotated[float, typer.Option(help="Seconds that a request may take.")] = 30.0
    grace: Annotated[float, typer.Option(help="Seconds that a stop may take.")] = 30.0
    rate: Annotated[
        float, typer.Option(help="Requests per second of one token, or address without one.")
    ] = 5000.0
    burst: Annotated[
        int, typer.Option(help="Requests that one token or address may send at once.", min=1)
    ] = 10_000
    row_rate: Annotated[
        float,
        typer.Option(help="Contexts per second of one token; bursts may be 100 times as large."),
    ] = 10_000.0
    campaign_rate: Annotated[
        float, typer.Option(help="Campaigns that one token may begin per day.")
    ] = 100.0
    max_waiting: Annotated[
        int, typer.Option(help="Requests that may wait for one campaign.", min=1)
    ] = 100
    log: Annotated[str, typer.Option(help="A line per request as json or text.")] = "json"

    @property
    def settings(self) -> Any:
        from contextgap.team.service.access import Settings

        given = {name.removeprefix("max_"): value for name, value in vars(self).items()}
        given["allow_hosts"] = tuple(given.pop("allow_host") or ())
        if given.pop("no_tokens"):
            given["tokens"] = "none"
        return Settings(**given)


@serve_app.callback()
@command
def serve_command(
    context: typer.Context,
    options: _Options,
    database: Where = FILE,
    json: Json = False,
) -> None:
    """Serve campaigns over HTTP until stopped (Ctrl-C, SIGTERM)."""
    if context.invoked_subcommand is not None:
        return
    with database_complaints():
        from contextgap.team.service.access import create_first_token
        from contextgap.team.service.app import serve

        settings = options.settings

        def announce(address: str) -> None:
            secret = create_first_token(database) if settings.needs_tokens else None
            if json:
                print_json({"address": address, "database": str(database), "token": secret})
                return
            lines = [f"contextgap serves {database} at {address}", f"{address}/docs lists it all."]
            if not settings.needs_tokens:
                lines.append("No tokens: EVERYBODY who reaches this address may do EVERYTHING.")
            elif secret is not None:
                lines += [
                    "Open this address in a browser, or give it to contextgap.client; its token "
                    "may do everything, and is shown this once:",
                    f"{address}/#token={secret}",
                ]
            else:
                lines.append(
                    "A token is needed; contextgap serve token create --database "
                    f"{database} --name bench-3 --scopes read,explore makes one."
                )
            out.print("\n".join(lines))

        serve(database, settings, announce)


@token_app.add("create")
def create_token_command(
    name: Annotated[str, typer.Option(help="Who or what will use it.")],
    scopes: Annotated[
        list[str],
        list_option("Permissions: read, explore, freeze, admin, comma-separated."),
    ],
    database: Where = FILE,
    campaign: Annotated[str | None, typer.Option(help="Limit the token to this campaign.")] = None,
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; never by default.")
    ] = None,
) -> Iterator[Any]:
    """Make a token and show its secret once."""
    with _maintained(database, _TOKENS) as (where, access):
        secret = access.create_token(where, name, scopes, campaign, days)
    yield {"name": name, "token": secret}
    typer.echo(secret)  # shown once, also if --quiet


@token_app.add("list")
def list_command(database: Where = FILE) -> Iterator[Any]:
    """List tokens, without their secrets."""
    with _maintained(database, _TOKENS) as (where, access):
        found = list(access.read_tokens(where).values())
    yield [vars(token) for token in found]
    headers = ["name", "scopes", "campaign", "until", "revoked"]
    rows = [
        [each.name, ", ".join(each.scopes), each.campaign or "all", each.until, each.revoked]
        for each in found
    ]
    print_table("tokens", headers, [[cell or "" for cell in row] for row in rows])


@token_app.add("revoke")
def revoke_command(
    name: Annotated[str, typer.Argument(help="The token's name.")],
    database: Where = FILE,
) -> Iterator[Any]:
    """Revoke a token; running services notice within seconds."""
    with _maintained(database, _TOKENS) as (where, access):
        access.revoke_token(where, name)
    yield {"revoked": name}
    out.print(f"token {name} revoked")


@database_app.add("status")
def database_status_command(url: Url = None, database: Where = FILE) -> Iterator[Any]:
    """Show what a database holds, its version, and whether it can be used."""
    with _maintained(url or database) as (where, store):
        found = store.database_status(where)
    yield Answer(found, int(str(found["ready"]).startswith("no")))
    print_table("database", ["", "value"], [[name, str(each)] for name, each in found.items()])


@database_app.add("upgrade")
def upgrade_command(url: Url = None, database: Where = FILE) -> Iterator[Any]:
    """Upgrade the tables of an earlier release; opening a campaign does so, too."""
    with _maintained(url or database, existing=True) as (where, store):
        changed = store.upgrade(where)
    yield {"upgraded": bool(changed)}
    out.print("upgraded" if changed else "nothing to upgrade")


@database_app.add("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="A new file.")],
    database: Where = FILE,
) -> Iterator[Any]:
    """Write everything to a file, as of now; the service may run meanwhile."""
    with _maintained(database) as (where, store):
        store.backup(where, file)
    yield {"backup": str(file)}
    out.print(f"wrote {file}")


@database_app.add("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that backup wrote.")],
    database: Where = FILE,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace what the database holds, without asking.")
    ] = False,
) -> Iterator[Any]:
    """Replace everything in a database by a backup of SQLite or PostgreSQL."""
    with _maintained(database) as (where, store):
        if not yes:
            typer.confirm(f"Replace everything in {database} by {file}?", abort=True)
        store.restore(where, file)
    yield {"restored": str(file)}
    out.print(f"restored {file}")


@database_app.add("verify")
def verify_command(url: Url = None, database: Where = FILE) -> Iterator[Any]:
    """Check all hashes and compare trials with logs; exit status 1 if altered."""
    with _maintained(url or database, existing=True) as (where, store):
        problems = list(store.verify(where))
    yield Answer({"problems": problems}, int(bool(problems)))
    for problem in problems:
        say_error(problem)
    if not problems:
        out.print("nothing was altered")
