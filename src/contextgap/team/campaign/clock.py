"""The time, as text that sorts as times do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def now() -> str:
    """Return the time in UTC."""
    return as_text(datetime.now(UTC))


def after(seconds: float, start: str | None = None) -> str | None:
    """Return the time so many seconds after another, by default now; None if too far away."""
    try:
        return as_text(datetime.fromisoformat(start or now()) + timedelta(seconds=seconds))
    except OverflowError:
        return None


def as_text(time: datetime) -> str:
    """Return a time in UTC as text."""
    return time.isoformat(timespec="microseconds")
