"""HTTP requests: how many, how long, and why they failed."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.buckets import SECONDS
from service.metrics.observations import Observations


class RequestMetrics(Collector):
    """Requests by route; whoever calls sees to it that there are only so many routes.

    They are counted from the event loop, and read from any thread.
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[tuple[str, str], Observations] = {}
        self._failures: dict[tuple[str, str, str], int] = {}

    def answered(
        self, method: str, route: str, *, status: int, seconds: float, failure: str | None
    ) -> None:
        """Count one request; ``failure`` is the reason if it failed."""
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        took = self._seconds.get((method, route))
        if took is None:
            took = self._seconds[method, route] = Observations(SECONDS)
        took.observe((seconds,))
        if failure is not None:
            reason = (method, route, failure)
            self._failures[reason] = self._failures.get(reason, 0) + 1

    def collect(self) -> Iterable[Metric]:
        """Return the series as they are now."""
        requests = CounterMetricFamily(
            "howsure_requests",
            "HTTP requests that were answered, by status; 499: the client left before.",
            labels=["method", "route", "status"],
        )
        for (method, route, status), count in list(self._requests.items()):
            requests.add_metric([method, route, str(int(status))], count)
        seconds = HistogramMetricFamily(
            "howsure_request_seconds",
            "From a request's first line to the last byte of its answer.",
            labels=["method", "route"],
        )
        for labels, durations in list(self._seconds.items()):
            durations.add_to(seconds, labels)
        failures = CounterMetricFamily(
            "howsure_failures",
            "Requests that failed, by the last part of the problem's `type`.",
            labels=["method", "route", "reason"],
        )
        for reason, count in list(self._failures.items()):
            failures.add_metric(list(reason), count)
        return [requests, seconds, failures]
