"""What all requests to a service share."""

from __future__ import annotations

from dataclasses import dataclass

from contextgap.service.access import Guard
from contextgap.service.hosting import Hosting
from contextgap.service.settings import Settings


@dataclass
class Service:
    """The parts of a service.

    Parameters
    ----------
    settings
        What was set.
    hosting
        The campaigns and policies.
    guard
        Who may do what.
    """

    settings: Settings
    hosting: Hosting
    guard: Guard
    stopping: bool = False
