"""Who may do what."""

from __future__ import annotations

from fastapi import Request

from contextgap.service.settings import Settings


class Guard:
    """Checks who sends a request.

    Parameters
    ----------
    settings
        Whom to trust.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def check(self, request: Request, scope: str) -> None:
        """Raise unless a request may do what needs a scope."""
