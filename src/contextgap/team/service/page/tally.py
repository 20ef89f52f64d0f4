"""A few numbers of every trial of a campaign in memory, kept up with the log.

Counting 100,000 trials in the database takes a fifth of a second, and a page asks every second.
What the page counts is kept here in 21 bytes a trial; of the database, only what is new is read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.team.campaign.store import Store
from contextgap.team.campaign.tables import EVENTS, TRIALS
from contextgap.team.campaign.trial import STATES

_COLUMNS = (TRIALS.c.id, TRIALS.c.state, TRIALS.c.arm, TRIALS.c.reward, TRIALS.c.told_by)
_CHANGES = ("tell", "cancel", "expire", "retract", "correct")
_AT_ONCE = 500  # trials in one query
_BEHIND = 20_000  # changes, from which on reading everything anew is quicker


class Counted(NamedTuple):
    """All trials up to an event: entry ``i`` of an array is about trial ``i + 1``.

    ``arms`` are JSON texts in the order in which they were first tried; ``arm`` and ``state`` are
    places among these and in ``STATES``. Rewards are NaN, and ``told_by`` 0, before they are told.
    """

    event: int
    arms: tuple[str, ...]
    arm: NDArray[np.int32]
    state: NDArray[np.int8]
    reward: FloatArray
    told_by: IntArray

    def are(self, state: str) -> NDArray[np.bool_]:
        """Return which trials are in a state."""
        return np.asarray(self.state == STATES.index(state))


class Tally:
    """Keeps up with the trials of one campaign; threads take turns.

    Parameters
    ----------
    store
        The campaign's part of the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._counted = _nothing()
        self._log = ""  # its hash

    def counted(self, connection: Connection) -> Counted:
        """Return all trials, after taking in what is new."""
        with self._lock:
            event, log = self._store.last_event(connection)
            known = self._counted
            if (event, log) != (known.event, self._log):
                then = self._store.events(connection, known.event - 1, known.event)
                if [each.hash for each in then] != [self._log]:  # a backup was restored
                    known, self._places = _nothing(), {}
                self._log = log
                changed = self._changed(connection, known.event)
                if len(changed) > _BEHIND:
                    known, changed = _nothing(), []
                self._counted = self._updated(connection, known, changed, event)
            return self._counted

    def _changed(self, connection: Connection, after: int) -> list[int]:
        """Return the trials that events after one are about, new ones aside."""
        if not after:
            return []
        statement = select(EVENTS.c.request).where(
            EVENTS.c.campaign == self._store.campaign,
            EVENTS.c.kind.in_(_CHANGES),
            EVENTS.c.number > after,
        )
        return [json.loads(request)["trial"] for request in connection.scalars(statement)]

    def _updated(
        self, connection: Connection, known: Counted, changed: Sequence[int], event: int
    ) -> Counted:
        mine = select(*_COLUMNS).where(TRIALS.c.campaign == self._store.campaign)
        old, size = [each for each in changed if each <= len(known.arm)], len(known.arm)
        rows: list[Any] = []
        for first in range(0, len(old), _AT_ONCE):
            some = TRIALS.c.id.in_(old[first : first + _AT_ONCE])
            rows += connection.execute(mine.where(some)).all()
        rows += connection.execute(mine.where(TRIALS.c.id > size).order_by(TRIALS.c.id)).all()
        count = max([size, *(row[0] for row in rows[-1:])])
        copies = [_grown(array, count) for array in known[2:]]
        if rows:
            numbers, states, arms, rewards, told_by = zip(*rows, strict=True)
            at = np.asarray(numbers) - 1
            copies[0][at] = [self._places.setdefault(arm, len(self._places)) for arm in arms]
            copies[1][at] = [STATES.index(state) for state in states]
            copies[2][at] = [np.nan if reward is None else reward for reward in rewards]
            copies[3][at] = [number or 0 for number in told_by]
        return Counted(event, tuple(self._places), *copies)


def last_event(connection: Connection, campaign: int) -> int:
    """Return the number of a campaign's last event."""
    statement = (
        select(EVENTS.c.number)
        .where(EVENTS.c.campaign == campaign)
        .order_by(EVENTS.c.number.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar() or 0


def _nothing() -> Counted:
    return Counted(
        0, (), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0), np.empty(0, np.intp)
    )


def _grown(array: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a copy with room for ``count`` entries; what was returned before stays as it was."""
    grown = np.zeros(count, dtype=array.dtype)
    grown[: len(array)] = array
    return grown
