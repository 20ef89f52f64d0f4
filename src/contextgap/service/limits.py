"""How much a client may send: sizes, and requests per second."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive

from contextgap.service.problems import RefusedError, busy

_CLIENTS = 10_000  # remembered at once


class Rates:
    """A bucket for each client: it holds ``burst`` requests, and ``rate`` more come per second.

    Parameters
    ----------
    rate, burst
        As in ``Settings``.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Take a request out of a client's bucket; raise if it is empty."""
        now = self._clock()
        left, at = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        enough = left >= 1.0
        self._buckets[client] = (left - 1.0 if enough else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if not enough:
            raise busy("too many requests; slow down", 429, (1.0 - left) / self._rate)


def limited(receive: Receive, length: str | None, most: int) -> Receive:
    """Return a way to receive a request that raises when its body is too large."""
    too_large = RefusedError(413, f"a request may have {most} bytes")
    if length is not None and length.isdecimal():
        if int(length) > most:
            raise too_large
        return receive  # the server sees to it that no more comes than was announced
    so_far = 0

    async def receive_some() -> Message:
        nonlocal so_far
        message = await receive()
        so_far += len(message.get("body", b""))
        if so_far > most:
            raise too_large
        return message

    return receive_some
