"""How much a client may send in a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from contextgap.team.service.problems import busy

_CLIENTS = 10_000  # remembered at once


class Rates:
    """A bucket for each client: it holds ``burst`` of something, and ``rate`` more per second.

    Parameters
    ----------
    what
        What is counted, such as "requests".
    rate, burst
        How many may be taken per second, and at once.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        what: str,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._rate, self._burst, self._clock = what, rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, client: str, count: float = 1.0) -> None:
        """Take some out of a client's bucket; raise if there are not as many."""
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(client, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            wanted = min(count, self._burst)  # more than a full bucket is taken from a full one
            enough = left >= wanted
            self._buckets[client] = (left - wanted if enough else left, now)
            if len(self._buckets) > _CLIENTS:
                self._buckets.popitem(last=False)
        if not enough:
            raise busy(f"too many {self._what}; slow down", 429, (wanted - left) / self._rate)
