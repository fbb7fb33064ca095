"""Counters and histograms by labels, as prometheus_client keeps them, without times of creation."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # of the library

# From the time of a table look-up to that of the slowest model.
SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class CountFamily:
    """A counter by labels; thread-safe."""

    def __init__(
        self, name: str, help_: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._counter = Counter(name, help_, labels, registry=registry)
        self._of: Callable[..., Counter] = (
            cache(self._counter.labels) if labels else lambda: self._counter
        )

    def add(self, *labels: object, by: int = 1) -> None:
        """Count events under these labels."""
        self._of(*labels).inc(by)


class Observations:
    """A histogram under some labels; thread-safe."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def observe(self, numbers: Iterable[float]) -> None:
        """Count numbers."""
        for number in numbers:
            self._histogram.observe(number)


class HistogramFamily:
    """A histogram by labels; thread-safe."""

    def __init__(
        self,
        name: str,
        help_: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        *,
        bounds: Sequence[float] = SECONDS,
    ) -> None:
        histogram = Histogram(name, help_, labels, registry=registry, buckets=bounds)
        self.of: Callable[..., Observations] = cache(
            lambda *labels: Observations(histogram.labels(*labels))
        )
