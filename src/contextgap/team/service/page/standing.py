"""How campaigns stand, from what the log recorded and what was counted; no learner is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from contextgap.team.campaign import NotFoundError
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.goal import asks_left, decode_goal, wanted_share
from contextgap.team.campaign.registry import campaign_names, find_store, summaries
from contextgap.team.campaign.store import Store
from contextgap.team.service.page import aggregates
from contextgap.team.service.page.tally import Counted, Tally, last_event

_STEPS = 240  # records of progress in one answer


class Standing:
    """How one campaign stands; what was worked out for an event is kept until the next.

    Parameters
    ----------
    store
        The campaign's part of the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tally = Tally(store)
        self._goal: Mapping[str, Any] | None = None
        self._kept: dict[str, tuple[Counted, Any]] = {}

    @property
    def store(self) -> Store:
        """The campaign's part of the database."""
        return self._store

    def last_event(self) -> int:
        """Return the number of the last event."""
        with self._store.reading() as connection:
            return last_event(connection, self._store.campaign)

    def trials(self) -> Counted:
        """Return what is kept of all trials."""
        with self._store.reading() as connection:
            return self._tally.counted(connection)

    def status(self) -> dict[str, Any]:
        """Return counts, the settled share and the last event."""
        return self._once("status", self._status)

    def series(self) -> dict[str, Any]:
        """Return picks, rewards and progress over time."""

        def make(connection: Connection, trials: Counted) -> dict[str, Any]:
            return {**aggregates.over_time(trials), "progress": self._recorded(connection)}

        return self._once("series", make)

    def _once(
        self, what: str, make: Callable[[Connection, Counted], dict[str, Any]]
    ) -> dict[str, Any]:
        with self._store.reading() as connection:
            trials = self._tally.counted(connection)
            known, found = self._kept.get(what, (None, {}))
            if known is not trials:
                found = make(connection, trials)
                self._kept[what] = trials, found
            return dict(found)

    def _status(self, connection: Connection, trials: Counted) -> dict[str, Any]:
        return {
            **self._progress(connection, trials.event),
            "trials": aggregates.by_state(trials),
            "arms": aggregates.by_arm(trials),
        }

    def _progress(self, connection: Connection, event: int) -> dict[str, Any]:
        """Return the last event, and how far the exploration was when that was last recorded."""
        steps = [each.came_of_it for each in self._store.events_of(connection, "progress")]
        latest = steps[-1] if steps else {"rewards": 0, "settled": None}
        goal = self._read_goal(connection)
        (last,) = self._store.events(connection, event - 1, event)
        return {
            "event": event,
            "at": last.at,
            "log": last.hash,
            "settled": latest["settled"],
            "settled_at": latest["rewards"],
            "bounds": latest.get("bounds"),
            "wanted": goal["share"],
            "tolerance": goal["tolerance"],
            "asks_left": asks_left(latest, steps, goal["share"]),
        }

    def _recorded(self, connection: Connection) -> list[dict[str, Any]]:
        events = self._store.events_of(connection, "progress")
        stride = -(-len(events) // _STEPS) or 1
        some = events[::-1][::stride][::-1]  # with the last one
        return [{**event.came_of_it, "at": event.at} for event in some]

    def _read_goal(self, connection: Connection) -> Mapping[str, Any]:
        """Return the goal; the default one if there is none. It never changes."""
        if self._goal is None:
            (first,) = self._store.events(connection, 0, 1)
            goal = decode_goal(first.requested["goal"])
            self._goal = {
                "share": wanted_share(goal),
                "tolerance": None if goal is None else goal.tolerance,
            }
        return self._goal


class Standings:
    """How all campaigns stand.

    Parameters
    ----------
    database
        Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Standing] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Standing:
        """Return how one campaign stands; raise if there is none of that name."""
        with self._lock:
            if name not in self._known:
                if name not in campaign_names(self._database):
                    raise NotFoundError(f"there is no campaign {name!r}")
                self._known[name] = Standing(find_store(self._database, name))
            return self._known[name]

    def all(self, visible: Callable[[str], bool]) -> list[dict[str, Any]]:
        """Return in a few words how every campaign stands that may be seen, the last used first."""
        found = [each for each in summaries(self._database) if visible(each["name"])]
        return sorted(found, key=lambda each: str(each["at"]), reverse=True)
