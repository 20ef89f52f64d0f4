"""Commands for campaigns, whose state is in a database, and for those who run the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.files import check_output
from contextgap.base.labels import Written
from contextgap.cli.options import (
    CategoryColumns,
    CyclicColumns,
    Exclude,
    Json,
    Missing,
    given_kinds,
    list_option,
)
from contextgap.cli.terminal import (
    complaints,
    noting_warnings,
    out,
    print_json,
    print_table,
    say_error,
    say_warning,
)
from contextgap.kernels import Gaussian
from contextgap.learner import StoppingRule
from contextgap.tables.cells import to_number
from contextgap.tables.columns import Category, Date, Kind

app = typer.Typer(
    help="Run long explorations by several people or programs, logged in a database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
database_app = typer.Typer(
    help="Maintain a database of campaigns: status, upgrade, backup, restore, verify.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
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
Url = Annotated[
    str | None, typer.Argument(help="The database; by default that of --database.", metavar="URL")
]
FILE = "contextgap.db"


@contextmanager
def opened(database: str, name: str | None, by: str | None = None) -> Iterator[Any]:
    """Yield a campaign; errors a user can do something about become one line."""
    with database_complaints():
        from contextgap.team.campaign import Campaign

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
    """Turn errors a user can fix into one line, also those of the database."""
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


@app.command("create")
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
    exclude: Exclude = None,
    category: CategoryColumns = None,
    cyclic: CyclicColumns = None,
    missing: Missing = None,
    lease: Annotated[
        float, typer.Option(help="Days after which a pick without a reward stops counting.")
    ] = 7.0,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Rewards are costs, to be kept low.")
    ] = False,
    method: Annotated[str, typer.Option(help="How to explore and deploy.")] = "auto",
    bandwidth: Annotated[
        float | None, typer.Option(help="Bandwidth of a Gaussian kernel; learnt by default.")
    ] = None,
    ridge: Annotated[float | None, typer.Option(help="Learnt if no bandwidth is given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    by: By = None,
    json: Json = False,
) -> None:
    """Begin a campaign."""
    with database_complaints():
        from contextgap.team.campaign import Campaign

        goal, columns = None, None
        if reference is not None:
            from contextgap.cli.tables import context_columns, described_table
            from contextgap.tables.files import read_sheet

            sheet = read_sheet(reference)
            names = context_columns(sheet, exclude)
            kinds = given_kinds(category, cyclic)
            table, columns = described_table(sheet, names, kinds, missing or ())
            wanted = 0.95 if share is None else share
            goal = StoppingRule(tolerance or 0.0, wanted, reference=table)
        elif any(
            each is not None for each in (tolerance, share, exclude, category, cyclic, missing)
        ):
            raise ValueError(
                "--tolerance, --share, --exclude, --category, --cyclic and --missing are about the "
                "contexts of --reference FILE"
            )
        how: dict[str, Any] = {} if bandwidth is None else {"kernel": Gaussian(bandwidth)}
        how |= {} if columns is None else {"columns": columns}
        how |= {} if ridge is None else {"ridge": ridge}
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
            **how,
        )
        labels = campaign.arms
        campaign.close()
    if json:
        print_json({"campaign": name, "arms": list(labels)})
        return
    out.print(f"campaign {name}: {', '.join(map(str, labels))}", markup=False, soft_wrap=True)


@app.command("ask", context_settings=_NUMBERS)
def ask_command(
    cells: Annotated[
        list[str], typer.Argument(help="The context: temperature=21.5 mode=eco, or 0.3 0.7.")
    ],
    database: Where = FILE,
    campaign: Which = None,
    among: Annotated[
        list[str] | None, list_option("The eligible arms, comma-separated; all by default.")
    ] = None,
    lease: Annotated[float | None, typer.Option(help="Days that the pick counts.")] = None,
    key: Key = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Choose the arm to try at a context, and open a trial."""
    with opened(database, campaign, by) as current:
        learner = current.learner()
        trial = current.ask(
            read_cells(cells, learner.columns),
            arms=None if among is None else [read_arm(arm, current) for arm in among],
            lease=None if lease is None else 86_400 * lease,
            key=key,
        )
        say_new_levels(learner, [trial])
    show_trial(trial, json)


@app.command("tell", context_settings=_NUMBERS)
def tell_command(
    words: Annotated[
        list[str], typer.Argument(help="The trial's number and the reward; with --arm, the reward.")
    ],
    database: Where = FILE,
    campaign: Which = None,
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
    by: By = None,
    json: Json = False,
) -> None:
    """Record the reward of a trial, or of outside data without a trial."""
    about: dict[str, Any] = {"noise": noise, "censored": censored or None, "key": key, "cost": cost}
    with opened(database, campaign, by) as current:
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
    show_trial(trial, json)


@app.command("cancel")
def cancel_command(
    trial: Number,
    database: Where = FILE,
    campaign: Which = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Cancel an open trial."""
    with opened(database, campaign, by) as current:
        found = current.cancel(trial)
    show_trial(found, json)


@app.command("status")
def status_command(database: Where = FILE, campaign: Which = None, json: Json = False) -> None:
    """Show trials, rewards, progress and score of a campaign."""
    with opened(database, campaign) as current:
        status, policies = current.status(), current.policies()
    if json:
        print_json({**status.describe(), "policies": [vars(policy) for policy in policies]})
        return
    print_table(f"campaign {status.name}", ["", "value"], status.rows())
    if policies:
        rows = [
            [each.name, each.at[:19], ", ".join(map(str, each.recalled)) or "none"]
            for each in policies
        ]
        print_table("frozen policies", ["name", "frozen (UTC)", "rests on trials changed"], rows)


@app.command("trials")
def trials_command(
    database: Where = FILE,
    campaign: Which = None,
    state: Annotated[
        list[str] | None,
        list_option("Only open, told, cancelled, expired or retracted ones; several by a,b."),
    ] = None,
    json: Json = False,
) -> None:
    """List trials."""
    with opened(database, campaign) as current:
        trials = current.find_trials(state)
    if json:
        print_json([described(trial) for trial in trials])
        return
    rows = [
        [each.id, each.state, each.arm, _text(each.reward), _cells(each), each.by or ""]
        for each in trials
    ]
    headers = ["trial", "state", "arm", "reward", "context", "by"]
    print_table(f"{len(trials)} trials", headers, rows)


@app.command("retract")
def retract_command(
    trial: Number,
    why: Why,
    database: Where = FILE,
    campaign: Which = None,
    key: Key = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Take a reward back, and list the frozen policies that were learnt from it."""
    with opened(database, campaign, by) as current:
        recall = current.retract(trial, why, key=key)
    show_recall(recall, "retracted", json)


@app.command("correct", context_settings=_NUMBERS)
def correct_command(
    trial: Number,
    reward: Annotated[str, typer.Argument(help="The right reward.")],
    why: Why,
    database: Where = FILE,
    campaign: Which = None,
    key: Key = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Replace a reward by the right one, and say which frozen policies rest on it."""
    with opened(database, campaign, by) as current:
        recall = current.correct(trial, read_reward(reward), why, key=key)
    show_recall(recall, "corrected", json)


@app.command("freeze")
def freeze_command(
    name: Annotated[str, typer.Argument(help="A name for the policy.")],
    database: Where = FILE,
    campaign: Which = None,
    output: Output = None,
    fallback: Annotated[
        str | None, typer.Option(help="A safe arm, for contexts where regret bounds are too large.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The regret bound above which the safe arm is recommended.")
    ] = None,
    key: Key = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Freeze a policy, and keep it in the campaign."""
    with opened(database, campaign, by) as current:
        safe = None if fallback is None else read_arm(fallback, current)
        _check_file(output, database)  # first: what is frozen stays frozen
        current.freeze(name, fallback=safe, tolerance=tolerance, key=key)
        _give(current, name, output, json)


@app.command("policy")
def policy_command(
    name: Annotated[str, typer.Argument(help="The name of a frozen policy.")],
    database: Where = FILE,
    campaign: Which = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Show a policy that was frozen before, or write it to a file again."""
    with opened(database, campaign) as current:
        _check_file(output, database)
        _give(current, name, output, json)


def _check_file(output: Path | None, database: str) -> None:
    """Raise if a policy cannot be written, or would replace the campaign's own database."""
    if output is not None:
        from contextgap.team.campaign.database import Database

        known = Database(database)
        check_output(output, [str(known.url.database)] if known.is_file else [])


def _give(campaign: Any, name: str, output: Path | None, json: bool) -> None:
    """Write a frozen policy to a file, if one is named, and show it."""
    from contextgap.cli.policies import print_policy

    policy = campaign.policy(name)
    if output is not None:
        policy.save(output)
    if json:
        known = next(each for each in campaign.policies() if each.name == name)
        print_json({**vars(known), "card": policy.card.describe()})
        return
    print_policy(f"policy {name}", policy)


@contextmanager
def _maintaining(database: str, *, existing: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield a database, and the functions for those who run it."""
    with database_complaints():
        from contextgap.team.campaign import maintenance
        from contextgap.team.campaign.database import Database

        where = Database(database)
        if existing and not where.exists:
            raise FileNotFoundError(f"there is no database {where.url!r}")
        yield where, maintenance


@database_app.command("status")
def database_status_command(url: Url = None, database: Where = FILE, json: Json = False) -> None:
    """Show what a database holds, its version, and whether it can be used."""
    with _maintaining(url or database) as (where, maintenance):
        found = maintenance.database_status(where)
    if json:
        print_json(found)
    else:
        print_table("database", ["", "value"], [[name, str(each)] for name, each in found.items()])
    if str(found["ready"]).startswith("no"):
        raise typer.Exit(1)


@database_app.command("upgrade")
def upgrade_command(url: Url = None, database: Where = FILE, json: Json = False) -> None:
    """Upgrade the tables of an earlier release; opening a campaign does so, too."""
    with _maintaining(url or database, existing=True) as (where, maintenance):
        changed = maintenance.upgrade(where)
    if json:
        print_json({"upgraded": bool(changed)})
        return
    out.print("upgraded" if changed else "nothing to upgrade")


@database_app.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="A new file.")],
    database: Where = FILE,
    json: Json = False,
) -> None:
    """Write everything to a file, as of now; the service may run meanwhile."""
    with _maintaining(database) as (where, maintenance):
        maintenance.backup(where, file)
    if json:
        print_json({"backup": str(file)})
        return
    out.print(f"wrote {file}", markup=False, soft_wrap=True)


@database_app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that backup wrote.")],
    database: Where = FILE,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace what the database holds, without asking.")
    ] = False,
    json: Json = False,
) -> None:
    """Replace everything in a database by a backup of SQLite or PostgreSQL."""
    with _maintaining(database) as (where, maintenance):
        if not yes:
            typer.confirm(f"Replace everything in {database} by {file}?", abort=True)
        maintenance.restore(where, file)
    if json:
        print_json({"restored": str(file)})
        return
    out.print(f"restored {file}", markup=False, soft_wrap=True)


@database_app.command("verify")
def verify_command(url: Url = None, database: Where = FILE, json: Json = False) -> None:
    """Check all hashes and compare trials with logs; exit status 1 if altered."""
    with _maintaining(url or database, existing=True) as (where, maintenance):
        problems = list(maintenance.verify(where))
    if json:
        print_json({"problems": problems})
    for problem in [] if json else problems:
        say_error(problem)
    if problems:
        raise typer.Exit(1)
    if not json:
        out.print("nothing was altered")


def read_cells(words: list[str], kinds: Mapping[str, Kind] | None = None) -> Any:
    """Return a context from name=value words, or from cells alone; ``kinds`` says what they are."""
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
    """Say which levels of the trials' contexts a learner had never met before it was asked."""
    table = learner.state.schema.table
    if table is None:
        return
    cells = [[trial.context[name] for trial in trials] for name in table.columns]
    by_name = dict(zip(table.columns, cells, strict=True))
    found = table.new_levels(table.encode(cells, learning=False)[0], by_name.__getitem__)
    for level in dict.fromkeys(found.values()):
        say_warning(f"new level {level}; nothing is known of it yet")


def read_cell(word: str, kind: Kind | None = None) -> Any:
    """Return a number, a missing value or text; what is a category or a date is no number."""
    number = None if isinstance(kind, Category | Date) else to_number(word)
    return word.strip() or None if number is None else number


def read_reward(word: str) -> float:
    """Return a reward."""
    number = to_number(word)
    if number is None:
        raise ValueError(f"the reward must be a number, such as 1 for yes, got {word!r}")
    return number


def read_arm(word: str, campaign: Any) -> Any:
    """Return the arm that is written so; learners complain about others."""
    return Written(campaign.arms).read(word, word)


def described(trial: Any) -> dict[str, Any]:
    """Return a trial for machines."""
    values = {name: value for name, value in vars(trial).items() if name != "id"}
    return {"trial": trial.id, **values}


def show_trial(trial: Any, json: bool) -> None:
    """Print one trial."""
    if json:
        print_json(described(trial))
        return
    reward = "" if trial.reward is None else f", reward {trial.reward:.6g}"
    # Without rich, which is slow to load.
    typer.echo(f"trial {trial.id}: {trial.arm} at {_cells(trial)}, {trial.state}{reward}")


def show_recall(recall: Any, what: str, json: bool) -> None:
    """Print what a retraction or correction means for frozen policies."""
    if json:
        policies = [vars(policy) for policy in recall.policies]
        print_json({"trial": recall.trial, what: True, "policies": policies})
        return
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
