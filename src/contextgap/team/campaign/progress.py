"""Progress of a campaign: its goal, how far exploring is, and the status that says so.

Progress is recorded in the log as rewards come, and computed anew for a fresh status.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.arrays import evenly
from contextgap.base.labels import Label
from contextgap.learner import Learner, StoppingRule
from contextgap.models.tuning import Tuning
from contextgap.policy.card import Card
from contextgap.policy.policy import Policy
from contextgap.policy.scoring import QUICK
from contextgap.tables.contexts import Encoded
from contextgap.team.campaign.payloads import decode_contexts, encode_contexts
from contextgap.team.campaign.trial import STATES

if TYPE_CHECKING:  # clients have no database
    from sqlalchemy import Connection

    from contextgap.team.campaign.replay import Replay
    from contextgap.team.campaign.session import Session
    from contextgap.team.campaign.store import Store

SAMPLE = 200
"""Contexts that stand for all, where none were given."""

START: dict[str, Any] = {"rewards": 0, "settled": None}
"""Progress before the first reward."""

_GROWTH = 1.05  # by which the number of rewards grows between two records of progress
_FEW = 20  # rewards, up to which every one is a step
_FIRST = math.floor(math.log(_FEW) / math.log(_GROWTH))
_QUANTILES = (0.1, 0.5, 0.9)
_SHARE = 0.95


def encode_goal(goal: StoppingRule | None) -> dict[str, Any] | None:
    """Return a stopping rule as plain values."""
    if goal is None:
        return None
    if goal.arms is not None:
        raise ValueError("goal must be about all arms, which may come and go; leave out its arms")
    if goal.average:
        raise ValueError("goal must be about a share of contexts; leave out average=True")
    reference = encode_contexts(goal.given, called="reference")
    return {"tolerance": goal.tolerance, "share": goal.share, "reference": reference}


def decode_goal(encoded: Mapping[str, Any] | None) -> StoppingRule | None:
    """Reverse ``encode_goal``."""
    if encoded is None:
        return None
    reference = decode_contexts(encoded["reference"])
    return StoppingRule(encoded["tolerance"], share=encoded["share"], reference=reference)


def _goal_for(learner: Learner, goal: StoppingRule | None) -> StoppingRule | None:
    """Return the goal, by default a regret bound of 0 at contexts seen; None before any reward."""
    if goal is not None or not len(learner.state.model):
        return goal
    seen = learner.state.model.observed.contexts
    reference = Encoded(seen[evenly(np.arange(len(seen)), SAMPLE)], learner.state.schema)
    return StoppingRule(0.0, share=_SHARE, reference=reference)


def _steps(rewards: int) -> int:
    """Return at how many numbers of rewards progress was recorded: each, then every 5 % more."""
    if rewards <= _FEW:
        return rewards
    return _FEW + math.floor(math.log(rewards) / math.log(_GROWTH)) - _FIRST


def is_due(before: int, rewards: int) -> bool:
    """Return whether progress is to be recorded, given how many rewards there were before."""
    return _steps(rewards) > _steps(before)


def progress(learner: Learner, goal: StoppingRule | None) -> dict[str, Any]:
    """Return how far the exploration is, as plain values."""
    rule = _goal_for(learner, goal)
    found: dict[str, Any] = {"rewards": len(learner.state.model), "settled": None}
    if rule is not None:
        schema = learner.state.schema
        reference = Encoded(rule.contexts_for(schema), schema)
        bounds = Policy(learner.state.policy()).certificate(reference).bound
        quantiles = np.quantile(bounds, _QUANTILES).tolist()
        found["settled"] = rule.settled(bounds)
        found["bounds"] = [bound if math.isfinite(bound) else None for bound in quantiles]
    return found


def summary(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], goal: StoppingRule | None
) -> dict[str, Any]:
    """Return the settled share, the share wanted, and about how many more rewards that takes."""
    wanted = _SHARE if goal is None else goal.share
    left = _asks_left(now, before, wanted)
    return {"settled": now["settled"], "wanted": wanted, "asks_left": left}


def recorded(store: Store, connection: Connection) -> list[dict[str, Any]]:
    """Return the progress that the log has recorded, the latest last."""
    found = [event.came_of_it for event in store.events_of(connection, "progress")]
    return found or [START]


def _asks_left(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], share: float
) -> int | None:
    """Return about how many more rewards are needed, at the rate since there were half as many.

    None where that cannot be estimated: before the first rewards, or if the share does not grow.
    """
    if now["settled"] is None:
        return None
    if now["settled"] >= share:
        return 0
    early = [each for each in before if each["rewards"] <= now["rewards"] / 2]
    if not early or early[-1]["settled"] is None:
        return None
    gained = now["settled"] - early[-1]["settled"]
    if gained <= 0:
        return None
    rate = gained / (now["rewards"] - early[-1]["rewards"])
    left: float = (share - now["settled"]) / rate
    return math.ceil(left)


@dataclass(frozen=True)
class CampaignStatus:
    """How a campaign stands; print it.

    Parameters
    ----------
    name
        Its name.
    trials
        How many trials there are in each state.
    rewards
        How many rewards of each arm were told and not retracted.
    settled
        The share of contexts with a certificate within the goal's tolerance; None before the first
        reward. Without a goal, the share of contexts seen at which the regret bound is 0.
    wanted
        The share at which exploring may end.
    asks_left
        About how many more rewards that takes, at the rate since there were half as many; None
        where that cannot be estimated.
    tuning
        The report of the last tuning; None before the first.
    score
        What deploying now would earn; None before there are two rewards.
    events
        How many events the log has.
    log
        The hash of the log.
    looked_after
        The number of the event after which ``settled`` and ``score`` were computed; less than
        ``events`` where the status is not fresh.
    """

    name: str
    trials: Mapping[str, int]
    rewards: Mapping[Label, int]
    settled: float | None
    wanted: float
    asks_left: int | None
    tuning: Tuning | None
    score: Card | None
    events: int
    log: str
    looked_after: int

    def rows(self) -> list[tuple[str, str]]:
        """Return the status for people: pairs of a name and a text."""
        settled = "unknown" if self.settled is None else f"{100 * self.settled:.1f} %"
        left = "unknown" if self.asks_left is None else f"about {self.asks_left}"
        tuned = "never"
        if self.tuning is not None:
            tuned = f"{self.tuning.chosen}, after {self.tuning.rewards} rewards"
        value = "unknown" if self.score is None else f"{self.score.value}"
        gain = "unknown" if self.score is None else f"{self.score.gain}"
        return [
            ("trials", ", ".join(f"{count} {state}" for state, count in self.trials.items())),
            ("rewards", ", ".join(f"{arm}: {count}" for arm, count in self.rewards.items())),
            ("settled", f"{settled} of {100 * self.wanted:g} % wanted"),
            ("asks left", left),
            ("last tuning", tuned),
            ("value if deployed now", value),
            ("gain over the best arm", gain),
            ("events", str(self.events)),
            *self._age(),
            ("log", self.log),
        ]

    def _age(self) -> list[tuple[str, str]]:
        if self.looked_after == self.events:
            return []
        return [("settled and value as of", f"event {self.looked_after}")]

    def describe(self) -> dict[str, Any]:
        """Return the status as plain values, for machines."""
        return {
            "name": self.name,
            "trials": dict(self.trials),
            "rewards": {str(arm): count for arm, count in self.rewards.items()},
            "settled": self.settled,
            "wanted": self.wanted,
            "asks_left": self.asks_left,
            "tuning": None if self.tuning is None else self.tuning.describe(),
            "score": None if self.score is None else self.score.describe(),
            "events": self.events,
            "log": self.log,
            "looked_after": self.looked_after,
        }

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join([f"campaign {self.name}", *lines])


class ProgressCache:
    """Computes the status of a campaign, and keeps what takes long for a while.

    ``goal`` is when exploring may end; None for a regret bound of 0.
    """

    def __init__(self, session: Session, goal: StoppingRule | None) -> None:
        self._session = session
        self._goal = goal
        self._last: _Computed | None = None

    def status(self, name: str, *, fresh: bool) -> CampaignStatus:
        """Return the status of the campaign of that name, as ``Campaign.status`` does."""
        with self._session.reading() as connection:
            store, replay = self._session.store, self._session.replay
            counts, before = store.counts(connection), recorded(store, connection)
        found = self._computed(replay, fresh=fresh)
        return CampaignStatus(
            name=name,
            trials={state: counts.get(state, 0) for state in STATES},
            rewards=replay.learner.counts,
            **summary(found.progress, before, self._goal),
            tuning=replay.learner.tuning,
            score=found.score,
            events=replay.number,
            log=replay.hash,
            looked_after=found.after,
        )

    def _computed(self, replay: Replay, *, fresh: bool) -> _Computed:
        """Return how good the learner is, as it was found last if that is good enough."""
        last, learner = self._last, replay.learner
        if last is not None and (last.log == replay.hash or not (fresh or last.is_old(learner))):
            return last
        score = learner.score(rows=QUICK) if len(learner.state.model) > 1 else None
        found = progress(learner, self._goal)
        self._last = _Computed(replay.hash, replay.number, found, score)
        return self._last


@dataclass(frozen=True)
class _Computed:
    """How good the learner was after an event, when the log had some hash."""

    log: str
    after: int
    progress: dict[str, Any]
    score: Card | None

    def is_old(self, learner: Learner) -> bool:
        """Whether there are many more rewards now, or fewer."""
        then, now = self.progress["rewards"], len(learner.state.model)
        return now < then or is_due(then, now)
