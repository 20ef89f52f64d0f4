"""What all requests to a service share."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

from contextgap.team.campaign.database import Database
from contextgap.team.service.access import Guard
from contextgap.team.service.hosting import CREATING, REBUILDING, Hosting
from contextgap.team.service.limits import Rates
from contextgap.team.service.logs import RequestLog
from contextgap.team.service.metrics import Metrics
from contextgap.team.service.page.state import Pages
from contextgap.team.service.settings import Settings

READERS = 16
"""Threads that read policies, names and what the page shows."""

_DAY = 86_400.0  # seconds
_ROWS_AT_ONCE = 100.0  # seconds of rows that may be sent at once


class Service:
    """The parts of a service.

    Parameters
    ----------
    database
        Where campaigns and tokens are.
    settings
        How it listens, whom it trusts, how much it takes.
    log
        Where a line for every request goes; None for nowhere.
    """

    def __init__(
        self, database: str | os.PathLike[str], settings: Settings, log: TextIO | None
    ) -> None:
        # A connection for each thread. Those of tokens and health wait for no others.
        threads = settings.campaigns + CREATING + REBUILDING + READERS
        opened = Database(database, connections=threads)
        self.vital = Database(database)
        self.settings = settings
        self.hosting = Hosting(opened, settings)
        self.guard = Guard(self.vital, settings)
        self.health = ThreadPoolExecutor(1, "health")
        self.requests_rate = Rates("requests", settings.rate, settings.burst)
        rows = settings.row_rate
        self.rows_rate = Rates("contexts", rows, _ROWS_AT_ONCE * rows)
        new = settings.campaign_rate
        self.campaigns_rate = Rates("new campaigns", new / _DAY, new)
        self.metrics = Metrics(self.hosting.waiting)
        self.requests = RequestLog(settings.log, log)
        self.stopping = False
        self.ended = True  # whether nothing is computed any more, after the end
        self.pages = Pages(self.hosting, lambda: self.stopping)

    def close(self) -> None:
        """Finish what runs as far as there is time, leave snapshots, and close everything."""
        self.ended = self.hosting.close(self.settings.grace / 2)
        self.vital.close()
