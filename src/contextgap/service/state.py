"""What all requests to a service share."""

from __future__ import annotations

import os
from typing import TextIO

from contextgap.campaign.database import Database
from contextgap.service.access import Guard
from contextgap.service.hosting import Hosting
from contextgap.service.limits import Rates
from contextgap.service.logs import RequestLog
from contextgap.service.metrics import Metrics
from contextgap.service.page.state import Pages
from contextgap.service.settings import Settings


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
        # One for each campaign's thread, and some for those who read policies, names and tokens.
        opened = Database(database, connections=settings.campaigns + 16)
        self.settings = settings
        self.hosting = Hosting(opened, settings)
        self.guard = Guard(opened, settings)
        self.rates = Rates(settings.rate, settings.burst)
        self.metrics = Metrics(self.hosting.waiting)
        self.requests = RequestLog(settings.log, log)
        self.stopping = False
        self.pages = Pages(self.hosting, lambda: self.stopping)
