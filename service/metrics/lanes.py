"""The lanes that requests wait in: for a model, or for a thread of their own."""

from collections.abc import Callable, Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.buckets import SECONDS
from service.metrics.observations import Observations


class Lane(Protocol):
    """Requests that wait, and those that something is done for."""

    @property
    def pending(self) -> int:
        """How many wait."""

    @property
    def running(self) -> int:
        """How many have one."""


class LaneMetrics(Collector):
    """Waits by lane, and how many wait and run at the time of the scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds: dict[str, Observations] = {}
        registry.register(self)
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
        """Return what observes waits of one lane, in seconds."""
        return self._seconds.setdefault(lane, Observations(SECONDS)).observe

    def watch(self, name: str, lane: Lane) -> None:
        """Ask a lane at each scrape."""
        self._pending.labels(name).set_function(lambda: lane.pending)
        self._running.labels(name).set_function(lambda: lane.running)

    def collect(self) -> Iterable[Metric]:
        """Return the waits as they are now."""
        seconds = HistogramMetricFamily(
            "howsure_queue_wait_seconds",
            "From a request to its run by a model, or to a thread of its own.",
            labels=["lane"],
        )
        for lane, waits in list(self._seconds.items()):
            waits.add_to(seconds, [lane])
        return [seconds]
