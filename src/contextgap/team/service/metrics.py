"""What a service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Metrics:
    """Counts requests by route, so that names of campaigns do not make ever more series.

    Parameters
    ----------
    waiting
        Returns how many requests wait for each open campaign.
    """

    def __init__(self, waiting: Callable[[], Mapping[str, int]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "contextgap_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "contextgap_request_seconds",
            "Seconds until the answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        # Looked up once: that takes longer than counting.
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        ProcessCollector(registry=self._registry)
        self._registry.register(_Campaigns(waiting))

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; methods that clients invent are counted as one."""
        method = method if method in _METHODS else "other"
        series = (method, route, status)
        if series not in self._series:
            counter = self._requests.labels(method, route, str(status))
            self._series[series] = counter, self._seconds.labels(route)
        counter, histogram = self._series[series]
        counter.inc()
        histogram.observe(seconds)

    def text(self) -> bytes:
        """Return all counts as Prometheus reads them."""
        return generate_latest(self._registry)


class _Campaigns:
    """Looks at the open campaigns when asked."""

    def __init__(self, waiting: Callable[[], Mapping[str, int]]) -> None:
        self._waiting = waiting

    def collect(self) -> Iterable[Metric]:
        """Yield what is counted."""
        waiting = self._waiting()
        yield GaugeMetricFamily("contextgap_campaigns_open", "Open campaigns.", len(waiting))
        total = sum(waiting.values())
        yield GaugeMetricFamily("contextgap_requests_waiting", "Requests that wait.", total)
