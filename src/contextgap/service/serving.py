"""Runs the service."""

from __future__ import annotations

import os

import uvicorn

from contextgap.service.app import create_app
from contextgap.service.settings import Settings


def serve(database: str | os.PathLike[str], settings: Settings) -> None:
    """Listen until told to stop; then finish what runs.

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How to listen, whom to trust, how much to take.
    """
    config = uvicorn.Config(
        create_app(database, settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=int(settings.grace),
    )
    uvicorn.Server(config).run()
