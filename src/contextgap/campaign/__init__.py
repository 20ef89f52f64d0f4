"""Campaigns: learners that last, with a log of events in a database that processes share."""

from contextgap.campaign.campaign import Campaign
from contextgap.campaign.errors import ConflictError, NotFoundError
from contextgap.campaign.frozen import FrozenPolicy, Recall, Recalled
from contextgap.campaign.status import CampaignStatus
from contextgap.campaign.trial import Trial

__all__ = [
    "Campaign",
    "CampaignStatus",
    "ConflictError",
    "FrozenPolicy",
    "NotFoundError",
    "Recall",
    "Recalled",
    "Trial",
]
