"""Who makes a call, for how long it may compute, and the time."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from contextgap.team.campaign.values import DeadlineError


@dataclass(frozen=True)
class _Call:
    by: str | None = None
    deadline: float | None = None
    cancelled: Callable[[], bool] | None = None


_NOBODY = _Call()
_CALL = ContextVar("contextgap_call", default=_NOBODY)


@contextmanager
def calling(
    by: str | None = None,
    *,
    deadline: float | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Have calls of campaigns in the block, and in this thread, made for somebody.

    ::

        with calling(token.name, deadline=time.monotonic() + 30, cancelled=client_left):
            campaign.ask(contexts)

    Computing checks between contexts, between events and before it learns hyperparameters whether
    it is too late; a call then raises ``DeadlineError``, and nothing was changed.

    .. versionadded:: 0.3

    Parameters
    ----------
    by
        The caller, for the log; by default that of the block around this one, or else the one that
        ``Campaign.open`` was given.
    deadline
        The latest time to go on, as ``time.monotonic`` says it; by default as around.
    cancelled
        Returns whether nobody waits for the answer any more; by default as around.

    Examples
    --------
    >>> with cg.campaign.calling("Ada"):
    ...     trial = campaign.ask([0.2, 0.1])
    >>> trial.by
    'Ada'
    """
    around = _CALL.get()
    token = _CALL.set(
        _Call(
            by or around.by,
            around.deadline if deadline is None else deadline,
            cancelled or around.cancelled,
        )
    )
    try:
        yield
    finally:
        _CALL.reset(token)


def speak_for(by: str | None) -> None:
    """Have calls of campaigns in the rest of a task made for somebody; None for nobody."""
    _CALL.set(_NOBODY if by is None else _Call(by))


def check_time() -> None:
    call = _CALL.get()
    if call.deadline is not None and time.monotonic() > call.deadline:
        raise DeadlineError(
            "the call took longer than it may, and nothing was changed; send fewer contexts at once"
        )
    if call.cancelled is not None and call.cancelled():
        raise DeadlineError("the call was cancelled, and nothing was changed")


def seconds_left(most: float) -> float:
    """Return how long the call that runs may wait, at most so many seconds."""
    deadline = _CALL.get().deadline
    return most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))


def caller(otherwise: str | None) -> str | None:
    """Return who makes the call that runs: the one named in ``calling``, or else another."""
    return _CALL.get().by or otherwise


@cache
def this_user() -> str | None:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return None


def now() -> str:
    return as_text(datetime.now(UTC))


def after(seconds: float, start: str | None = None) -> str | None:
    """Return the time so many seconds after another, by default now; None if too far away."""
    try:
        return as_text(datetime.fromisoformat(start or now()) + timedelta(seconds=seconds))
    except OverflowError:
        return None


def as_text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")
