"""What is asked of the child processes: how long they take, and how many rows at once."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, Histogram

from service.metrics.buckets import ROWS, SECONDS


class RunMetrics:
    """Answers of children by what was asked: ``predict``, ``record``, ``load`` or ``export``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "howsure_compute_seconds",
            "One question to a child process that runs a model, from sent to answered.",
            ["operation"],
            buckets=SECONDS,
            registry=registry,
        )
        self._rows = Histogram(
            "howsure_batch_rows",
            "Rows of such a question.",
            ["operation"],
            buckets=ROWS,
            registry=registry,
        )
        self._series: dict[str, tuple[Histogram, Histogram]] = {}
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
        series = self._series.get(operation)
        if series is None:
            # To look a series up takes longer than to add to it.
            series = self._seconds.labels(operation), self._rows.labels(operation)
            self._series[operation] = series
        series[0].observe(seconds)
        if rows:
            series[1].observe(rows)
