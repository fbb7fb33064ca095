"""Counters and histograms by labels, as prometheus_client keeps them, without times of creation."""

from collections.abc import Callable, Sequence
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # of the library

# From the time of a table look-up to that of the slowest model.
SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def counters(
    name: str, help_: str, labels: Sequence[str], registry: CollectorRegistry
) -> Callable[..., Counter]:
    """Return the function that finds the counter of some labels; thread-safe."""
    counter = Counter(name, help_, labels, registry=registry)
    return cache(counter.labels) if labels else lambda: counter


def histograms(
    name: str,
    help_: str,
    labels: Sequence[str],
    registry: CollectorRegistry,
    *,
    bounds: Sequence[float] = SECONDS,
) -> Callable[..., Histogram]:
    """Return the function that finds the histogram of some labels; thread-safe."""
    return cache(Histogram(name, help_, labels, registry=registry, buckets=bounds).labels)
