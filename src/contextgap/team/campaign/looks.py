"""Looks at how good a campaign's learner is, which take long and are kept for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contextgap.learner import StoppingRule
from contextgap.policy.card import Card
from contextgap.policy.scoring import QUICK
from contextgap.team.campaign.goal import asks_left, progress, steps, wanted_share
from contextgap.team.campaign.replay import Replay
from contextgap.team.campaign.session import Session
from contextgap.team.campaign.status import CampaignStatus
from contextgap.team.campaign.trial import STATES


@dataclass(frozen=True)
class _Look:
    """How good the learner was after an event, when the log had some hash."""

    log: str
    after: int
    progress: dict[str, Any]
    score: Card | None

    def is_old(self, replay: Replay) -> bool:
        """Whether there are many more rewards now, or fewer."""
        then, now = self.progress["rewards"], len(replay.learner.state.model)
        return now < then or steps(now) > steps(then)


class Looks:
    """Says how a campaign stands.

    Parameters
    ----------
    session
        The campaign's.
    goal
        When exploring may end; None for when arms are told apart.
    """

    def __init__(self, session: Session, goal: StoppingRule | None) -> None:
        self._session = session
        self._goal = goal
        self._last: _Look | None = None

    def status(self, name: str, *, fresh: bool) -> CampaignStatus:
        """Return the status of the campaign of that name, as ``Campaign.status`` does."""
        with self._session.reading() as connection:
            store, replay = self._session.store, self._session.replay
            counts = store.counts(connection)
            before = [event.came_of_it for event in store.events_of(connection, "progress")]
        look = self._look(replay, fresh=fresh)
        wanted = wanted_share(self._goal)
        return CampaignStatus(
            name=name,
            trials={state: counts.get(state, 0) for state in STATES},
            rewards=replay.learner.counts,
            settled=look.progress["settled"],
            wanted=wanted,
            asks_left=asks_left(look.progress, before, wanted),
            tuning=replay.learner.tuning,
            score=look.score,
            events=replay.number,
            log=replay.hash,
            looked_after=look.after,
        )

    def _look(self, replay: Replay, *, fresh: bool) -> _Look:
        """Return how good the learner is, as it was found last if that is good enough."""
        last = self._last
        if last is not None and (last.log == replay.hash or not (fresh or last.is_old(replay))):
            return last
        enough = len(replay.learner.state.model) > 1
        self._last = _Look(
            replay.hash,
            replay.number,
            progress(replay.learner, self._goal),
            replay.learner.score(rows=QUICK) if enough else None,
        )
        return self._last
