"""The campaigns that a service keeps open, each on a thread, and the policies in its memory."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any, NamedTuple, TypeVar

from contextgap.insight.watch import Watch
from contextgap.policy.policy import Policy
from contextgap.team.campaign import Campaign, NotFoundError, calling
from contextgap.team.campaign.campaign import (
    load_policy,
    load_watch,
    save_watch,
    together,
    watched_policies,
)
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import campaign_names, find_store
from contextgap.team.service.access import Settings, busy

logger = logging.getLogger("contextgap.service")
R = TypeVar("R")
# Threads that begin campaigns, and that rebuild policies.
CREATING, REBUILDING = 4, 1
UNSAVED = 1000  # rows of a watch that a kill may lose
_TOGETHER = 64  # requests in one commit
Call = Callable[[Campaign], Any]


class Job(NamedTuple):
    """A request's call on a campaign; ``brief`` ones may share a commit."""

    call: Call
    brief: bool
    future: asyncio.Future[Any]
    context: Context

    def run(self, campaign: Campaign) -> Any:
        return self.context.run(self._run, campaign)

    def _run(self, campaign: Campaign) -> Any:
        with calling(cancelled=self.future.cancelled):
            return self.call(campaign)


class Worker:
    """The thread of one campaign."""

    def __init__(self, open_campaign: Callable[[], Campaign], waiting: int) -> None:
        self._open = open_campaign  # in the thread, again after a failure
        self._most = waiting
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._campaign: Campaign | None = None
        self._thread = threading.Thread(target=self._work, name="campaign", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        with self._changed:
            return not self._jobs and not self._busy

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    def submit(self, call: Call, *, brief: bool = False) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closing:
                raise busy("the service is stopping")
            if len(self._jobs) >= self._most:
                raise busy(f"{len(self._jobs)} requests wait for this campaign already")
            self._jobs.append(Job(call, brief, future, copy_context()))
            self._changed.notify()
        return future

    def stop(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, patience: float) -> bool:
        self._thread.join(max(0.0, patience))
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (jobs := self._next()) is not None:
            if jobs:
                # Once for all: waking the loop is slow.
                results = self._results(jobs)
                jobs[0].future.get_loop().call_soon_threadsafe(_answer, jobs, results)
        if self._campaign is not None:
            self._campaign.close()

    def _next(self) -> list[Job] | None:
        with self._changed:
            self._busy = False
            while not self._jobs:
                if self._closing:
                    return None
                self._changed.wait()
            self._busy = True
            jobs = [self._jobs.popleft()]
            while jobs[0].brief and self._jobs and self._jobs[0].brief and len(jobs) < _TOGETHER:
                jobs.append(self._jobs.popleft())
            return [job for job in jobs if not job.future.cancelled()]

    def _results(self, jobs: list[Job]) -> Sequence[Any]:
        """Return results or errors of calls, committed."""
        try:
            if self._campaign is None:
                self._campaign = self._open()
            if len(jobs) == 1:
                return [jobs[0].run(self._campaign)]
            return together(self._campaign, [job.run for job in jobs])
        except BaseException as error:
            return [error] * len(jobs)


def _answer(jobs: Sequence[Job], results: Sequence[Any]) -> None:
    for job, result in zip(jobs, results, strict=True):
        if job.future.done():
            continue
        if isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)


class KeptWatch:
    """A watch over a frozen policy that the database keeps."""

    def __init__(self, watch: Watch, save: Callable[[Watch], None], *, new: bool) -> None:
        self.watch = watch
        self._save = save
        self._calls = 0  # that changed more than rows
        self._saved = (-1 if new else watch.rows), 0  # rows and calls, when last saved
        self._failing = False
        self._lock = threading.Lock()

    @property
    def changed(self) -> bool:
        return self._saved != (self.watch.rows, self._calls)

    def see(self, contexts: Any, *, eligible: Any) -> Any:
        found = self.watch.see(contexts, eligible=eligible)
        if self.watch.rows - self._saved[0] > UNSAVED and not self._failing:
            self.save()
        return found

    def change(self, call: Callable[[Watch], R]) -> R:
        """Make a call, and save the watch before it is answered."""
        result = call(self.watch)
        with self._lock:
            self._calls += 1
        self.save()
        return result

    def save(self) -> bool:
        with self._lock:
            if self.changed:
                state = self.watch.rows, self._calls
                try:
                    self._save(self.watch)
                except Exception as error:  # decisions do not fail for it; it is tried again
                    self._failing = True
                    _warn("cannot save a watch", error)
                    return False
                self._saved, self._failing = state, False
            return True


def _warn(what: str, why: BaseException) -> None:
    logger.warning(what, extra={"fields": {"why": str(why)}})


async def _run_in(threads: ThreadPoolExecutor, make: Callable[[], R]) -> R:
    return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, make)


class Hosting:
    """Opens campaigns when first used, each on a thread of its own."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self._settings = settings
        self._workers: OrderedDict[str, Worker] = OrderedDict()
        self._policies: OrderedDict[tuple[str, str], Policy] = OrderedDict()
        self.watches: dict[tuple[str, str], KeptWatch] = {}
        self._loading: dict[tuple[str, str], asyncio.Task[Policy]] = {}
        self._lock = threading.Lock()
        self._closing = False
        self.pace: dict[str, float] = {}  # seconds per context of a campaign's last ask
        self._creating = ThreadPoolExecutor(CREATING, "creating")
        self._rebuilding = ThreadPoolExecutor(REBUILDING, "rebuilding")

    async def run(self, name: str, call: Callable[[Campaign], R], *, brief: bool = False) -> R:
        """Make a call on a campaign's thread; ``brief`` ones may share a commit."""
        if name not in self._workers and name not in await self.names():
            raise NotFoundError(f"there is no campaign {name!r}")  # before a thread is made
        found: R = await self._worker(name).submit(call, brief=brief)
        return found

    async def create(self, name: str, arms: Any, **settings: Any) -> None:
        if self._closing:
            raise busy("the service is stopping")
        make = partial(Campaign.create, self.database, name, arms, **settings)
        await _run_in(self._creating, make)

    async def beside(self, name: str, call: Callable[[Campaign], R]) -> R:
        """Make a long call that only reads, for which others do not wait."""

        def make() -> R:
            return call(Campaign.open(self.database, name))

        return await _run_in(self._rebuilding, make)

    def knows_key(self, name: str, key: str) -> bool:
        store = find_store(self.database, name)
        with store.reading() as connection:
            return store.event_of_key(connection, key) is not None

    async def names(self) -> tuple[str, ...]:
        return tuple(await asyncio.to_thread(campaign_names, self.database))

    async def policy(self, campaign: str, name: str) -> Policy:
        key = campaign, name
        if (found := self._policies.get(key)) is not None:
            self._policies.move_to_end(key)
            return found
        if key not in self._loading:
            self._loading[key] = asyncio.create_task(self._load(key))
            self._loading[key].add_done_callback(lambda _: self._loading.pop(key))
        return await asyncio.shield(self._loading[key])

    async def watch(self, campaign: str, name: str) -> KeptWatch:
        """Return the watch over a frozen policy; the first call begins it."""
        policy = await self.policy(campaign, name)
        if (campaign, name) not in self.watches:
            made = await asyncio.to_thread(policy.watch)
            kept = self._keep((campaign, name), made, new=True)
            await asyncio.to_thread(kept.save)
        return self.watches[campaign, name]

    async def restore_watches(self) -> None:
        known = await asyncio.to_thread(watched_policies, self.database)
        for key in known[-self._settings.policies :]:
            try:
                await self.policy(*key)
            except Exception as error:
                _warn("cannot go on with a watch", error)

    async def save_watches(self) -> None:
        for kept in list(self.watches.values()):
            if kept.changed:
                await asyncio.to_thread(kept.save)

    def watched(self) -> dict[tuple[str, str], Watch]:
        return {key: kept.watch for key, kept in list(self.watches.items())}

    async def _load(self, key: tuple[str, str]) -> Policy:
        found = await asyncio.to_thread(load_policy, self.database, *key)
        try:
            watch = await asyncio.to_thread(load_watch, self.database, *key, found)
        except ValueError as error:  # altered, or of another release: a new one begins
            _warn("cannot go on with a watch", error)
            watch = None
        while len(self._policies) >= self._settings.policies:
            oldest = next(iter(self._policies))
            kept = self.watches.get(oldest)
            if kept is None or not kept.changed or not await asyncio.to_thread(kept.save):
                self._policies.pop(oldest, None)
                self.watches.pop(oldest, None)
        self._policies[key] = found
        if watch is not None:
            self._keep(key, watch, new=False)
        return found

    def _keep(self, key: tuple[str, str], watch: Watch, *, new: bool) -> KeptWatch:
        made = KeptWatch(watch, partial(save_watch, self.database, *key), new=new)
        return self.watches.setdefault(key, made)

    def waiting(self) -> dict[str, int]:
        with self._lock:
            return {name: worker.waiting for name, worker in self._workers.items()}

    def close(self, patience: float) -> bool:
        """Finish, leave snapshots and close; return whether there was time."""
        until = time.monotonic() + patience
        with self._lock:
            self._closing = True
            workers = list(self._workers.values())
            self._workers.clear()
        for worker in workers:
            worker.stop()
        ended = [worker.join(until - time.monotonic()) for worker in workers]
        for kept in list(self.watches.values()):
            kept.save()
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
        idle = [name for name, worker in self._workers.items() if worker.idle]
        surplus = len(self._workers) + 1 - self._settings.campaigns
        for name in idle[: max(0, surplus)]:
            self._workers.pop(name).stop()
        if len(self._workers) >= self._settings.campaigns:
            raise busy(f"{len(self._workers)} campaigns are busy already")
