"""Commands that serve campaigns over HTTP, and for those who run the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.cli.campaign import FILE, Where, database_complaints
from contextgap.cli.terminal import (
    Answer,
    Commands,
    Json,
    command,
    list_option,
    out,
    print_json,
    print_table,
    say_error,
)

app = typer.Typer(
    help="Serve campaigns over HTTP.", invoke_without_command=True, pretty_exceptions_enable=False
)
token_app = Commands("Tokens, with which programs may use the service.")
database_app = Commands(
    "Maintain a database of campaigns: status, upgrade, backup, restore, verify."
)
app.add_typer(token_app, name="token")

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


@app.callback()
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
def create_command(
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
    typer.echo(secret)  # also where --quiet is wanted: it is shown once


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
