"""One thread for one campaign: requests take turns, and those that wait are committed together."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from contextgap.team.campaign import Campaign, calling
from contextgap.team.campaign.campaign import together
from contextgap.team.service.problems import busy

_TOGETHER = 64  # requests in one commit
Call = Callable[[Campaign], Any]


class Job(NamedTuple):
    """What a request asks of a campaign; ``brief`` ones may share a commit."""

    call: Call
    brief: bool
    future: asyncio.Future[Any]
    context: Context  # who asks, and until when

    def run(self, campaign: Campaign) -> Any:
        """Make the call, unless nobody waits for it any more."""
        return self.context.run(self._run, campaign)

    def _run(self, campaign: Campaign) -> Any:
        with calling(cancelled=self.future.cancelled):
            return self.call(campaign)


class Worker:
    """The thread that does everything on one campaign, in the order in which requests come.

    Parameters
    ----------
    open_campaign
        Opens the campaign; called in the thread, and again after it failed.
    waiting
        How many requests may wait.
    """

    def __init__(self, open_campaign: Callable[[], Campaign], waiting: int) -> None:
        self._open = open_campaign
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
        """Whether nothing runs or waits."""
        with self._changed:
            return not self._jobs and not self._busy

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._jobs)

    def submit(self, call: Call, *, brief: bool = False) -> asyncio.Future[Any]:
        """Have a call made for the loop that runs; raise if too many wait."""
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
        """Have the thread finish what waits, leave a snapshot, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, patience: float) -> bool:
        """Wait until the thread has ended, for some seconds at most; return whether it has."""
        self._thread.join(max(0.0, patience))
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (jobs := self._next()) is not None:
            _run(self._opened, jobs)
        if self._campaign is not None:
            self._campaign.close()

    def _next(self) -> list[Job] | None:
        """Return the next request, with all that may share its commit; None at the end."""
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

    def _opened(self) -> Campaign:
        if self._campaign is None:
            self._campaign = self._open()
        return self._campaign


def _run(opened: Callable[[], Campaign], jobs: list[Job]) -> None:
    """Make calls; each is answered only after what it did was committed."""
    if not jobs:
        return
    try:
        campaign = opened()
        if len(jobs) == 1:
            found = [_outcome(jobs[0], campaign)]
        else:
            answers = zip(jobs, together(campaign, [job.run for job in jobs]), strict=True)
            found = [_answered(job, answer) for job, answer in answers]
    except BaseException as error:
        found = [_Outcome(job.future, error=error) for job in jobs]
    # At once: waking the loop for each takes as long as what it does then.
    jobs[0].future.get_loop().call_soon_threadsafe(_tell, found)


class _Outcome(NamedTuple):
    """What a call returned, or the error that it raised."""

    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


def _outcome(job: Job, campaign: Campaign) -> _Outcome:
    try:
        return _Outcome(job.future, job.run(campaign))
    except Exception as error:
        return _Outcome(job.future, error=error)


def _answered(job: Job, answer: Any) -> _Outcome:
    if isinstance(answer, Exception):
        return _Outcome(job.future, error=answer)
    return _Outcome(job.future, answer)


def _tell(outcomes: list[_Outcome]) -> None:
    """Tell those who still wait; runs in their loop."""
    for future, result, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
