"""The campaigns that a service keeps open, and the frozen policies that it keeps in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from contextgap.policy.policy import Policy
from contextgap.team.campaign import Campaign, NotFoundError
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.frozen import load_policy
from contextgap.team.campaign.registry import campaign_names, find_store
from contextgap.team.service.problems import busy
from contextgap.team.service.settings import Settings
from contextgap.team.service.worker import Worker

R = TypeVar("R")
CREATING, REBUILDING = 4, 1
"""Threads that begin campaigns, and that make policies again from the log."""


async def _run_in(threads: ThreadPoolExecutor, make: Callable[[], R]) -> R:
    """Make a call in one of some threads, in the context of the request."""
    return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, make)


class Hosting:
    """Opens campaigns when they are first used, and keeps each on a thread of its own.

    Parameters
    ----------
    database
        Where the campaigns are.
    settings
        How many to keep.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self._settings = settings
        self._workers: OrderedDict[str, Worker] = OrderedDict()
        self._policies: OrderedDict[tuple[str, str], Policy] = OrderedDict()
        self._lock = threading.Lock()
        self._closing = False
        self.pace: dict[str, float] = {}  # seconds that each context of a campaign's last ask took
        self._creating = ThreadPoolExecutor(CREATING, "creating")
        self._rebuilding = ThreadPoolExecutor(REBUILDING, "rebuilding")

    async def run(self, name: str, call: Callable[[Campaign], R], *, brief: bool = False) -> R:
        """Make a call on a campaign's thread; ``brief`` ones that wait are committed together."""
        if name not in self._workers and name not in await self.names():
            raise NotFoundError(f"there is no campaign {name!r}")  # before a thread is made for it
        found: R = await self._worker(name).submit(call, brief=brief)
        return found

    async def create(self, name: str, arms: Any, **settings: Any) -> None:
        """Begin a campaign."""
        if self._closing:
            raise busy("the service is stopping")
        make = partial(Campaign.create, self.database, name, arms, **settings)
        await _run_in(self._creating, make)

    async def beside(self, name: str, call: Callable[[Campaign], R]) -> R:
        """Make a call that reads a campaign and takes long; others do not wait for it."""

        def make() -> R:
            return call(Campaign.open(self.database, name))

        return await _run_in(self._rebuilding, make)

    def knows_key(self, name: str, key: str) -> bool:
        """Return whether a request with a key happened before."""
        store = find_store(self.database, name)
        with store.reading() as connection:
            return store.event_of_key(connection, key) is not None

    async def names(self) -> tuple[str, ...]:
        """Return the names of all campaigns."""
        return tuple(await asyncio.to_thread(campaign_names, self.database))

    def policy_in_memory(self, campaign: str, name: str) -> Policy | None:
        """Return a frozen policy that was used before."""
        found = self._policies.get((campaign, name))
        if found is not None:
            self._policies.move_to_end((campaign, name))
        return found

    async def policy(self, campaign: str, name: str) -> Policy:
        """Return a frozen policy, whatever the campaign is busy with."""
        found = self.policy_in_memory(campaign, name)
        if found is None:
            found = await asyncio.to_thread(load_policy, self.database, campaign, name)
            self._policies[campaign, name] = found
            while len(self._policies) > self._settings.policies:
                self._policies.popitem(last=False)
        return found

    def waiting(self) -> dict[str, int]:
        """Return how many requests wait for each open campaign."""
        with self._lock:
            return {name: worker.waiting for name, worker in self._workers.items()}

    def close(self, patience: float) -> bool:
        """Finish what runs, leave snapshots and close everything; return whether there was time."""
        until = time.monotonic() + patience
        with self._lock:
            self._closing = True
            workers = list(self._workers.values())
            self._workers.clear()
        for worker in workers:
            worker.stop()
        ended = [worker.join(until - time.monotonic()) for worker in workers]
        self.database.close()
        return all(ended)

    def _worker(self, name: str) -> Worker:
        with self._lock:
            if self._closing:
                raise busy("the service is stopping")
            if name not in self._workers:
                self._make_room()
                open_campaign = partial(Campaign.open, self.database, name)
                self._workers[name] = Worker(open_campaign, self._settings.waiting)
            self._workers.move_to_end(name)
            return self._workers[name]

    def _make_room(self) -> None:
        """Close campaigns not used for longest; raise if all are busy."""
        idle = [name for name, worker in self._workers.items() if worker.idle]
        surplus = len(self._workers) + 1 - self._settings.campaigns
        for name in idle[: max(0, surplus)]:
            self._workers.pop(name).stop()
        if len(self._workers) >= self._settings.campaigns:
            raise busy(f"{len(self._workers)} campaigns are busy already")
