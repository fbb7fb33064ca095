"""All metrics of one app, counted as events happen and rendered on a scrape."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.metrics.answers import AnswerCounts
from service.metrics.families import ROWS, counters, histograms

ROUTE = ("method", "route")


class RequestMetrics:
    """Requests by route, counted from the event loop; the caller bounds the number of routes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counters(
            "howsure_requests",
            "Answered HTTP requests by status; 499: the client left first.",
            [*ROUTE, "status"],
            registry,
        )
        self._seconds = histograms(
            "howsure_request_seconds",
            "Time from a request's first line to the last byte of its answer.",
            ROUTE,
            registry,
        )
        self._failures = counters(
            "howsure_failures",
            "Failed requests by the last part of the problem's `type`.",
            [*ROUTE, "reason"],
            registry,
        )

    def answered(
        self, method: str, route: str, *, status: int, seconds: float, failure: str | None
    ) -> None:
        """Count one request; ``failure`` is the reason if it failed."""
        self._requests(method, route, status).inc()
        self._seconds(method, route).observe(seconds)
        if failure is not None:
            self._failures(method, route, failure).inc()


class Lane(Protocol):
    """A queue: requests that wait, and requests that run."""

    @property
    def pending(self) -> int:
        """Number of waiting requests."""

    @property
    def running(self) -> int:
        """Number of running requests."""


class LaneMetrics:
    """Waiting times by queue, and how many requests wait and run at the time of the scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = histograms(
            "howsure_queue_wait_seconds",
            "Time that a request waits for a model or a thread.",
            ["lane"],
            registry,
        )
        gauge = partial(Gauge, labelnames=["lane"], registry=registry)
        self._pending = gauge(
            "howsure_pending_requests", "Requests that wait for a model or a thread."
        )
        self._running = gauge(
            "howsure_running_requests", "Requests that a model or a thread works on."
        )

    def waited(self, lane: str) -> Callable[[float], None]:
        """Return the function that observes the waiting times of one queue, in seconds."""
        return self._seconds(lane).observe

    def watch(self, name: str, *lanes: Lane) -> None:
        """Read the lengths of a queue, or of several as one, at each scrape."""
        self._pending.labels(name).set_function(lambda: sum(lane.pending for lane in lanes))
        self._running.labels(name).set_function(lambda: sum(lane.running for lane in lanes))


class RunMetrics:
    """Responses of children by operation: ``predict``, ``record``, ``load`` or ``export``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = histograms(
            "howsure_compute_seconds",
            "Time of one request to a child process that runs a model.",
            ["operation"],
            registry,
        )
        self._rows = histograms(
            "howsure_batch_rows",
            "Rows of one request to a child process.",
            ["operation"],
            registry,
            bounds=ROWS,
        )
        self._loaded = Gauge(
            "howsure_models_loaded",
            "Loaded ONNX models, each in a child process.",
            registry=registry,
        )

    def watch(self, loaded: Callable[[], int]) -> None:
        """Call ``loaded`` at each scrape for the number of loaded models."""
        self._loaded.set_function(loaded)

    def answered(self, operation: str, rows: int, seconds: float) -> None:
        """Count an answered request."""
        self._seconds(operation).observe(seconds)
        if rows:
            self._rows(operation).observe(rows)


class JobMetrics:
    """Calibrations and evaluations by status, and whether the database answered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Gauge(
            "howsure_jobs",
            "Jobs in the database by kind and status.",
            ["kind", "status"],
            registry=registry,
        )
        self._queue_age = Gauge(
            "howsure_queue_age_seconds",
            "Time since the oldest queued job was submitted; 0 without one.",
            ["kind"],
            registry=registry,
        )
        self._database_up = Gauge(
            "howsure_database_up", "Whether the database answered this scrape.", registry=registry
        )

    def show(self, counts: Mapping[tuple[str, str], int], ages: Mapping[str, float]) -> None:
        """Set counts by kind and status, and the ages of the queues by kind."""
        self._database_up.set(1)
        for labels, count in counts.items():
            self._jobs.labels(*labels).set(count)
        for kind, seconds in ages.items():
            self._queue_age.labels(kind).set(seconds)

    def hide(self) -> None:
        """Remove what the database did not answer."""
        self._database_up.set(0)
        self._jobs.clear()
        self._queue_age.clear()


class SweepMetrics:
    """Sweeps of this process by outcome, and the files that they checked and removed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sweeps = counters(
            "howsure_sweeps", "Sweeps of the artifact store by outcome.", ["outcome"], registry
        )
        self._seen = counters(
            "howsure_swept_files", "Files that sweeps have checked.", (), registry
        )
        self._removed = counters(
            "howsure_orphans_removed", "Unreferenced files that sweeps have removed.", (), registry
        )
        self._sweeps("failed")
        self._sweeps("finished")  # both are shown before they happen

    def swept(self, *, files: int, removed: int) -> None:
        """Count a finished sweep."""
        self._sweeps("finished").inc()
        self._seen().inc(files)
        self._removed().inc(removed)

    def failed(self) -> None:
        """Count an interrupted sweep."""
        self._sweeps("failed").inc()


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """All metrics of an app, in a separate registry; thread-safe."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = RequestMetrics(self._registry)
        self.lanes = LaneMetrics(self._registry)
        self.runs = RunMetrics(self._registry)
        self.answers = AnswerCounts()
        self.jobs = JobMetrics(self._registry)
        self.sweeps = SweepMetrics(self._registry)
        self._registry.register(self.answers)
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """Return all metrics in the text format of `CONTENT_TYPE`."""
        return generate_latest(self._registry)
