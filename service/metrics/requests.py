"""HTTP requests: how many, how long, and why they failed."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from service.metrics.buckets import SECONDS


class RequestMetrics:
    """Requests by route; whoever calls sees to it that there are only so many routes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "howsure_requests",
            "HTTP requests that were answered, by status; 499: the client left before.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "howsure_request_seconds",
            "From a request's first line to the last byte of its answer.",
            ["method", "route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._failures = Counter(
            "howsure_failures",
            "Requests that failed, by the last part of the problem's `type`.",
            ["method", "route", "reason"],
            registry=registry,
        )

    def answered(
        self, method: str, route: str, *, status: int, seconds: float, failure: str | None
    ) -> None:
        """Count one request; ``failure`` is the reason if it failed."""
        requests, took = self._of(method, route, status)
        requests.inc()
        took.observe(seconds)
        if failure is not None:
            self._failures.labels(method, route, failure).inc()

    def _of(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """Return the series of an answer, which to look up takes longer than to add to."""
        key = (method, route, status)
        found = self._series.get(key)
        if found is None:
            requests = self._requests.labels(method, route, str(int(status)))
            found = self._series[key] = (requests, self._seconds.labels(method, route))
        return found
