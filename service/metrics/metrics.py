"""All metrics of one app, counted as events happen and rendered on a scrape."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from service.metrics.answers import AnswerCounts
from service.metrics.families import (
    ROWS,
    SECONDS,
    CountFamily,
    Family,
    HistogramFamily,
    families_of,
)

ROUTE = ("method", "route")


class RequestMetrics:
    """Requests by route, counted from the event loop; the caller bounds the number of routes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = CountFamily(
            "howsure_requests",
            "HTTP requests that were answered, by status; 499: the client left before.",
            [*ROUTE, "status"],
            registry,
        )
        self._seconds = HistogramFamily(
            "howsure_request_seconds",
            "From a request's first line to the last byte of its answer.",
            ROUTE,
            registry,
            bounds=SECONDS,
        )
        self._failures = CountFamily(
            "howsure_failures",
            "Requests that failed, by the last part of the problem's `type`.",
            [*ROUTE, "reason"],
            registry,
        )

    def answered(
        self, method: str, route: str, *, status: int, seconds: float, failure: str | None
    ) -> None:
        """Count one request; ``failure`` is the reason if it failed."""
        self._requests.add(method, route, status)
        self._seconds.of(method, route).observe((seconds,))
        if failure is not None:
            self._failures.add(method, route, failure)


class Lane(Protocol):
    """A queue: requests that wait, and requests that run."""

    @property
    def pending(self) -> int:
        """How many wait."""

    @property
    def running(self) -> int:
        """How many run."""


class LaneMetrics:
    """Waiting times by queue, and how many requests wait and run at the time of the scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = HistogramFamily(
            "howsure_queue_wait_seconds",
            "From a request to its run by a model, or to a thread of its own.",
            ["lane"],
            registry,
            bounds=SECONDS,
        )
        self._pending = Gauge(
            "howsure_pending_requests",
            "Requests that wait for a model, or for a thread.",
            ["lane"],
            registry=registry,
        )
        self._running = Gauge(
            "howsure_running_requests",
            "Requests that a model is at, or that have a thread.",
            ["lane"],
            registry=registry,
        )

    def waited(self, lane: str) -> Callable[[Iterable[float]], None]:
        """Return the function that observes waiting times of one queue, in seconds."""
        return self._seconds.of(lane).observe

    def watch(self, name: str, lane: Lane) -> None:
        """Read the lengths of a queue at each scrape."""
        self._pending.labels(name).set_function(lambda: lane.pending)
        self._running.labels(name).set_function(lambda: lane.running)


class RunMetrics:
    """Responses of children by operation: ``predict``, ``record``, ``load`` or ``export``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = HistogramFamily(
            "howsure_compute_seconds",
            "One question to a child process that runs a model, from sent to answered.",
            ["operation"],
            registry,
            bounds=SECONDS,
        )
        self._rows = HistogramFamily(
            "howsure_batch_rows",
            "Rows of such a question.",
            ["operation"],
            registry,
            bounds=ROWS,
        )
        self._loaded = Gauge(
            "howsure_models_loaded",
            "ONNX models that are loaded, each in a child process.",
            registry=registry,
        )

    def watch(self, loaded: Callable[[], int]) -> None:
        """Call ``loaded`` at each scrape for the number of loaded models."""
        self._loaded.set_function(loaded)

    def answered(self, operation: str, rows: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._seconds.of(operation).observe((seconds,))
        if rows:
            self._rows.of(operation).observe((rows,))


class JobMetrics:
    """Calibrations and evaluations by status, and whether the database answered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Gauge(
            "howsure_jobs",
            "Jobs of the database, by kind and status.",
            ["kind", "status"],
            registry=registry,
        )
        self._database_up = Gauge(
            "howsure_database_up", "Whether the database answered this scrape.", registry=registry
        )

    def show(self, counts: Mapping[tuple[str, str], int] | None) -> None:
        """Set counts by kind and status; None if the database did not answer."""
        self._database_up.set(counts is not None)
        if counts is None:
            self._jobs.clear()
        else:
            for labels, count in counts.items():
                self._jobs.labels(*labels).set(count)


class SweepMetrics:
    """Sweeps of this process, by how they ended, and the files that they saw and removed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sweeps = Counter(
            "howsure_sweeps",
            "Sweeps of the artifact store, by how they ended.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("finished", "failed"):
            self._sweeps.labels(outcome)
        self._seen = Counter(
            "howsure_swept_files", "Files that those sweeps looked at.", registry=registry
        )
        self._removed = Counter(
            "howsure_orphans_removed",
            "Files among them that nothing referred to.",
            registry=registry,
        )

    def swept(self, *, files: int, removed: int) -> None:
        """Count a sweep that came to its end."""
        self._sweeps.labels("finished").inc()
        self._seen.inc(files)
        self._removed.inc(removed)

    def failed(self) -> None:
        """Count a sweep that broke off."""
        self._sweeps.labels("failed").inc()


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """Every metric of one app, in a registry of its own; safe to use from many threads."""

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
        self._of_all: Callable[[], bytes] | None = None

    def render(self) -> bytes:
        """Return all metrics in the text format of `CONTENT_TYPE`.

        One of several server processes returns the sum of all of them.
        """
        if self._of_all is not None:
            return self._of_all()
        return generate_latest(_WithoutCreated(self._registry))

    def families(self) -> list[Family]:
        """Return the metrics of this process only."""
        return families_of(_WithoutCreated(self._registry))

    def share(self, of_all: Callable[[], bytes]) -> None:
        """Have `render` return the text of this function: the metrics of all server processes."""
        self._of_all = of_all


class _WithoutCreated(Collector):
    """A registry without the time at which each series began, half of all lines."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric
