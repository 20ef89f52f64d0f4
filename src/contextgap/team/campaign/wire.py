"""What campaigns take and answer as JSON, and back, for the service and its client.

Contexts are written as ``tables.table.read_json`` reads them. Arms are labels as files keep them:
text, numbers, and tuples as ``{"tuple": [...]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.models.tuning import Tuning
from contextgap.policy.card import Card
from contextgap.team.campaign.payloads import decode_contexts, encode_contexts, is_table
from contextgap.team.campaign.progress import CampaignStatus
from contextgap.team.campaign.recalls import FrozenPolicy, Recall, Recalled
from contextgap.team.campaign.trial import Trial

_TIMES = ("asked", "until", "told")


def contexts_json(contexts: Any, called: str = "contexts") -> Any:
    """Return one context or several as JSON values."""
    encoded = encode_contexts(contexts, called)
    if not is_table(encoded):
        return encoded["row"]
    return encoded if "columns" in encoded["table"] else encoded["table"]["rows"]


def read_label(value: Any, called: str = "arm") -> Label:
    """Return an arm's label from a JSON value."""
    try:
        return decode_label(value)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{called} must be a label such as text or a number, got {value!r}") from (
            None
        )


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON values."""
    times = {name: getattr(trial, name) for name in _TIMES}
    return {
        "id": trial.id,
        "arm": encode_label(trial.arm),
        "context": contexts_json(trial.context),
        "state": trial.state,
        "reward": trial.reward,
        "eligible": None if trial.eligible is None else [*map(encode_label, trial.eligible)],
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
        "why": trial.why,
        "by": trial.by,
    }


def read_trial_json(value: Mapping[str, Any]) -> Trial:
    """Reverse ``trial_json``."""
    times = {name: value[name] for name in _TIMES}
    eligible = value["eligible"]
    return Trial(
        id=value["id"],
        arm=decode_label(value["arm"]),
        context=decode_contexts({"row": value["context"]}),
        state=value["state"],
        reward=value["reward"],
        eligible=None if eligible is None else tuple(map(decode_label, eligible)),
        why=value["why"],
        by=value.get("by"),  # services of release 0.2 do not say
        **{n: None if time is None else datetime.fromisoformat(time) for n, time in times.items()},
    )


def recall_json(recall: Recall) -> dict[str, Any]:
    """Return what a retraction means as JSON values."""
    return {"trial": recall.trial, "policies": [vars(policy) for policy in recall.policies]}


def read_recall_json(value: Mapping[str, Any]) -> Recall:
    """Reverse ``recall_json``."""
    return Recall(value["trial"], tuple(Recalled(**policy) for policy in value["policies"]))


def frozen_json(frozen: FrozenPolicy) -> dict[str, Any]:
    """Return what is known of a frozen policy as JSON values."""
    return {**vars(frozen), "recalled": list(frozen.recalled)}


def read_frozen_json(value: Mapping[str, Any]) -> FrozenPolicy:
    """Reverse ``frozen_json``."""
    return FrozenPolicy(**{**value, "recalled": tuple(value["recalled"])})


def status_json(status: CampaignStatus) -> dict[str, Any]:
    """Return how a campaign stands as JSON values; arms keep their types."""
    counts = [{"arm": encode_label(arm), "count": n} for arm, n in status.rewards.items()]
    return {**status.describe(), "rewards": counts}


def read_status_json(value: Mapping[str, Any]) -> CampaignStatus:
    """Reverse ``status_json``."""
    counts: Sequence[Mapping[str, Any]] = value["rewards"]
    rest = {
        "rewards": {decode_label(each["arm"]): each["count"] for each in counts},
        "tuning": None if value["tuning"] is None else Tuning.restored(value["tuning"]),
        "score": None if value["score"] is None else Card.restored(value["score"]),
    }
    return CampaignStatus(**{**value, **rest})
