"""Counters and histograms that cost little where they count."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

# From the time of a table look-up to that of the slowest model.
SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Observations:
    """Counts by bucket; thread-safe.

    Parameters
    ----------
    bounds
        Upper bounds of all buckets except the last, ascending.
    """

    __slots__ = ("_bounds", "_counts", "_lock", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, numbers: Iterable[float]) -> None:
        """Count numbers."""
        with self._lock:
            for number in numbers:
                self._counts[bisect_left(self._bounds, number)] += 1
                self._sum += number

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Add a sample of each bucket under these labels."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
        family.add_metric(labels, buckets, total)


class CountFamily(Collector):
    """A counter by labels: written by one thread, read by any."""

    def __init__(
        self, name: str, help_: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._declared = (name, help_)
        self._labels = labels
        self._counts: dict[tuple[object, ...], int] = {}
        registry.register(self)

    def add(self, *labels: object, by: int = 1) -> None:
        """Count events under these labels."""
        self._counts[labels] = self._counts.get(labels, 0) + by

    def collect(self) -> Iterable[Metric]:
        """Return the current counts."""
        family = CounterMetricFamily(*self._declared, labels=self._labels)
        for labels, count in list(self._counts.items()):
            family.add_metric(list(map(str, labels)), count)
        return [family]


class HistogramFamily(Collector):
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
        self._declared = (name, help_)
        self._labels = labels
        self._bounds = bounds
        self._observed: dict[tuple[str, ...], Observations] = {}
        registry.register(self)

    def of(self, *labels: str) -> Observations:
        """Return the histogram of these labels."""
        found = self._observed.get(labels)
        if found is None:
            found = self._observed.setdefault(labels, Observations(self._bounds))
        return found

    def collect(self) -> Iterable[Metric]:
        """Return the current histograms."""
        family = HistogramMetricFamily(*self._declared, labels=self._labels)
        for labels, found in list(self._observed.items()):
            found.add_to(family, labels)
        return [family]
