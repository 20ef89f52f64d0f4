"""What a campaign's learner believes, for the live page; computed beside the campaign's thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from contextgap.base.labels import encode_label
from contextgap.insight.courses import along, read_context, values_of
from contextgap.models.tuning import Tuning
from contextgap.policy.policy import Policy
from contextgap.policy.scoring import QUICK
from contextgap.tables.columns import Category, Number
from contextgap.team.campaign import Campaign
from contextgap.team.campaign.codec import as_json
from contextgap.team.service.hosting import Hosting
from contextgap.team.service.page_counts import Standings

_SHARE = 0.1  # of the time may be spent on freezing a campaign whose log grows
_QUICK = 0.1  # seconds, up to which that does not matter
_CAMPAIGNS = 32  # whose last belief is kept
_TRIALS = 6  # named in an explanation


@dataclass
class Belief:
    """A learner's rule as of an event, and the seconds that were spent on it."""

    event: int
    policy: Policy | None  # None before the first reward
    tuning: Tuning | None
    at: float
    seconds: float

    @property
    def good_until(self) -> float:
        """When it may be computed anew, if the log grew."""
        return self.at + (self.seconds / _SHARE if self.seconds > _QUICK else 0.0)

    @property
    def rewards(self) -> int:
        """How many rewards it rests on."""
        return 0 if self.policy is None else len(self.policy.state.model.observed)


class Beliefs:
    """The last belief of each campaign's learner; ones that take long are used for a while."""

    def __init__(self, hosting: Hosting, standings: Standings) -> None:
        self._hosting, self._standings = hosting, standings
        self._last: OrderedDict[str, Belief] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def of(self, campaign: str) -> Belief:
        """Return what is believed now, or was a moment ago."""
        standing = await asyncio.to_thread(self._standings.of, campaign)
        async with self._locks.setdefault(campaign, asyncio.Lock()):
            event, known = await asyncio.to_thread(standing.last_event), self._last.get(campaign)
            if known is not None and (known.event == event or time.monotonic() < known.good_until):
                return known
            policy, tuning, seconds = await self._hosting.run(campaign, _frozen)
            self._last[campaign] = Belief(event, policy, tuning, time.monotonic(), seconds)
            self._last.move_to_end(campaign)
            while len(self._last) > _CAMPAIGNS:
                self._last.popitem(last=False)
            return self._last[campaign]


def _frozen(campaign: Campaign) -> tuple[Policy | None, Tuning | None, float]:
    _ = campaign.arms  # takes in what happened, which has to be done anyway
    start = time.monotonic()
    learner = campaign.learner()
    policy = learner.freeze() if any(learner.counts.values()) else None
    return policy, learner.tuning, time.monotonic() - start


def score(belief: Belief) -> dict[str, Any]:
    """Return the score card in words, and the last tuning."""
    start = time.monotonic()
    card = None
    if belief.policy is not None and belief.rewards > 1:
        card = belief.policy.score(rows=QUICK)
    belief.seconds += time.monotonic() - start
    tuning = belief.tuning
    return {
        "event": belief.event,
        "rewards": belief.rewards,
        "rows": [] if card is None else card.rows(),
        "warnings": [] if card is None else list(card.warnings),
        "tuning": None if tuning is None else f"{tuning.chosen}, after {tuning.rewards} rewards",
    }


def columns(belief: Belief) -> dict[str, Any]:
    """Return what contexts look like: columns, their values, and the most typical context."""
    policy = belief.policy
    if policy is None:
        return {"event": belief.event, "columns": [], "typical": None, "named": False}
    typical = policy.state.schema.decode(read_context(policy, None)[None])[0]
    return plain(
        {
            "event": belief.event,
            "named": policy.columns is not None,
            "columns": [_column(policy, name) for name in policy.state.schema.parts()],
            "typical": typical,
        }
    )


def _column(policy: Policy, name: str) -> dict[str, Any]:
    kind = Number() if policy.kinds is None else policy.kinds[name]
    found: dict[str, Any] = {"name": name, "kind": type(kind).__name__.lower()}
    found["gaps"] = kind.missing
    table = policy.state.schema.table
    if isinstance(kind, Category) and table is not None:
        levels = table.codings[table.columns.index(name)].levels
        return found | {"levels": [level for level in levels if level is not None]}
    try:
        low, high = values_of(policy, name, 2)
    except ValueError:  # nothing but gaps
        low = high = None
    return found | {"low": low, "high": high}


def _policy(belief: Belief) -> Policy:
    if belief.policy is None:
        raise ValueError("there is nothing to explain before the first reward was told")
    return belief.policy


def course(belief: Belief, column: Any, at: Any) -> dict[str, Any]:
    """Return what is believed along a column."""
    found = along(_policy(belief), column, at)
    return plain(
        {
            **found.describe(),
            "event": belief.event,
            "arms": [_arm(arm) for arm in found.arms],
            "best": [_key(arm) for arm in found.best],
        }
    )


def why(belief: Belief, context: Any, against: Any) -> dict[str, Any]:
    """Return the arms at a context, best first, and why; trials by places among the rewards."""
    policy = _policy(belief)
    ranking = policy.rank(context)
    explained = None
    if len(policy.arms) > 1:
        found = policy.explain(context, against, most=_TRIALS)
        explained = {
            **found.describe(),
            "arm": _arm(found.arm),
            "against": _arm(found.against),
            "trials": [{**asdict(each), "arm": _arm(each.arm)} for each in found.trials],
            "columns": [[name, part] for name, part in found.columns.items()],
        }
    return plain(
        {
            "event": belief.event,
            "ranking": [{**vars(each), "arm": _arm(each.arm)} for each in ranking],
            "explanation": explained,
        }
    )


def _key(label: Any) -> str:
    return as_json(encode_label(label))


def _arm(label: Any) -> dict[str, Any]:
    return {"key": _key(label), "text": str(label), "label": encode_label(label)}


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them: null for what is not finite."""
    return {str(name): _plain(each) for name, each in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
