"""What is asked of the child processes: how long they take, and how many rows at once."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.buckets import ROWS, SECONDS
from service.metrics.observations import Observations


class RunMetrics(Collector):
    """Answers of children by what was asked: ``predict``, ``record``, ``load`` or ``export``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds: dict[str, Observations] = {}
        self._rows: dict[str, Observations] = {}
        registry.register(self)
        self._loaded = Gauge(
            "howsure_models_loaded",
            "ONNX models that are loaded, each in a child process.",
            registry=registry,
        )

    def watch(self, loaded: Callable[[], int]) -> None:
        """Ask at each scrape how many models are loaded."""
        self._loaded.set_function(loaded)

    def answered(self, operation: str, rows: int, seconds: float) -> None:
        """Count one question that was answered."""
        found = self._seconds.get(operation)
        if found is None:
            found = self._seconds.setdefault(operation, Observations(SECONDS))
        found.observe((seconds,))
        if rows:
            counted = self._rows.get(operation)
            if counted is None:
                counted = self._rows.setdefault(operation, Observations(ROWS))
            counted.observe((rows,))

    def collect(self) -> Iterable[Metric]:
        """Return the series as they are now."""
        seconds = HistogramMetricFamily(
            "howsure_compute_seconds",
            "One question to a child process that runs a model, from sent to answered.",
            labels=["operation"],
        )
        rows = HistogramMetricFamily(
            "howsure_batch_rows", "Rows of such a question.", labels=["operation"]
        )
        for family, observed in ((seconds, self._seconds), (rows, self._rows)):
            for operation, found in list(observed.items()):
                found.add_to(family, [operation])
        return [seconds, rows]
