"""Commands that serve campaigns over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from contextgap.cli.campaign import FILE, Where, database_complaints

app = typer.Typer(
    help="Serve campaigns over HTTP.",
    invoke_without_command=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def serve_command(
    context: typer.Context,
    database: Where = FILE,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where to listen.", min=0, max=65535)] = 8000,
) -> None:
    """Serve campaigns over HTTP until told to stop."""
    if context.invoked_subcommand is not None:
        return
    with database_complaints():
        try:
            from contextgap.service.serving import serve
            from contextgap.service.settings import Settings
        except ImportError as error:
            raise ImportError(
                f"the service needs {error.name}; pip install 'contextgap[serve]' brings it"
            ) from None
        serve(database, Settings(host=host, port=port))
