"""What all requests of pages share."""

from __future__ import annotations

from collections.abc import Callable

from contextgap.team.service.hosting import Hosting
from contextgap.team.service.page.beliefs import Beliefs
from contextgap.team.service.page.listening import Listening
from contextgap.team.service.page.standing import Standings


class Pages:
    """The parts behind the live page.

    Parameters
    ----------
    hosting
        The campaigns.
    stopping
        Says whether the service is about to end.
    """

    def __init__(self, hosting: Hosting, stopping: Callable[[], bool]) -> None:
        self.standings = Standings(hosting.database)
        self.beliefs = Beliefs(hosting, self.standings)
        self.listening = Listening(self.standings, stopping)
