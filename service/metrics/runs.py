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
        self._seconds.labels(operation).observe(seconds)
        if rows:
            self._rows.labels(operation).observe(rows)
