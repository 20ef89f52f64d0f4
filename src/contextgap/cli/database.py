"""Commands for those who run a database of campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contextgap.cli.campaign import FILE, Where, database_complaints
from contextgap.cli.options import Json
from contextgap.cli.terminal import out, print_json, print_table, say_error

app = typer.Typer(
    help="Look after a database of campaigns: status, upgrade, backup, restore, verify.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Url = Annotated[
    str | None, typer.Argument(help="The database; by default that of --database.", metavar="URL")
]


@app.command("status")
def status_command(url: Url = None, database: Where = FILE, json: Json = False) -> None:
    """Show what a database holds, its version, and whether it can be used."""
    with database_complaints():
        from contextgap.team.campaign.database import Database
        from contextgap.team.campaign.maintenance import database_status

        found = database_status(Database(url or database))
    if json:
        print_json(found)
    else:
        print_table("database", ["", "value"], [[name, str(each)] for name, each in found.items()])
    if str(found["ready"]).startswith("no"):
        raise typer.Exit(1)


@app.command("upgrade")
def upgrade_command(url: Url = None, database: Where = FILE) -> None:
    """Upgrade the tables of an earlier release; opening a campaign does so, too."""
    with database_complaints():
        from contextgap.team.campaign.database import Database
        from contextgap.team.campaign.store import upgrade

        where = Database(url or database)
        if not where.exists:
            raise FileNotFoundError(f"there is no database {where.url!r}")
        changed = upgrade(where)
    out.print("upgraded" if changed else "nothing to upgrade")


@app.command("backup")
def backup_command(
    file: Annotated[Path, typer.Argument(help="A new file.")], database: Where = FILE
) -> None:
    """Write everything to a file, as of now; the service may run meanwhile."""
    with database_complaints():
        from contextgap.team.campaign.database import Database
        from contextgap.team.campaign.maintenance import backup

        backup(Database(database), file)
    out.print(f"wrote {file}", markup=False, soft_wrap=True)


@app.command("restore")
def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that backup wrote.")],
    database: Where = FILE,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace what the database holds, without asking.")
    ] = False,
) -> None:
    """Replace everything in a database by a backup, of a database of either kind."""
    with database_complaints():
        from contextgap.team.campaign.database import Database
        from contextgap.team.campaign.maintenance import restore

        if not yes:
            typer.confirm(f"Replace everything in {database} by {file}?", abort=True)
        restore(Database(database), file)
    out.print(f"restored {file}", markup=False, soft_wrap=True)


@app.command("verify")
def verify_command(url: Url = None, database: Where = FILE, json: Json = False) -> None:
    """Check hashes of logs, trials against logs, snapshots and policies; status 1 if altered."""
    with database_complaints():
        from contextgap.team.campaign.database import Database
        from contextgap.team.campaign.maintenance import verify

        where = Database(url or database)
        if not where.exists:
            raise FileNotFoundError(f"there is no database {where.url!r}")
        problems = list(verify(where))
    if json:
        print_json({"problems": problems})
    for problem in [] if json else problems:
        say_error(problem)
    if problems:
        raise typer.Exit(1)
    if not json:
        out.print("nothing was altered")
