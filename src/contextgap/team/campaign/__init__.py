"""Campaigns: learners with a log of events in a database that several processes share."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from contextgap.team.campaign.values import (
    AlteredError,
    CampaignStatus,
    ConflictError,
    DeadlineError,
    FrozenPolicy,
    NotFoundError,
    Recall,
    Recalled,
    Trial,
    UnavailableError,
    calling,
)

if TYPE_CHECKING:
    from contextgap.team.campaign.campaign import Campaign

__all__ = [
    "AlteredError",
    "Campaign",
    "CampaignStatus",
    "ConflictError",
    "DeadlineError",
    "FrozenPolicy",
    "NotFoundError",
    "Recall",
    "Recalled",
    "Trial",
    "UnavailableError",
    "calling",
]


def __getattr__(name: str) -> Any:
    # When first used: clients of a service have the rest without a database.
    if name == "Campaign":
        return import_module("contextgap.team.campaign.campaign").Campaign
    raise AttributeError(f"module 'contextgap.team.campaign' has no attribute {name!r}")
