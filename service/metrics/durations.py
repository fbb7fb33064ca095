"""A histogram of seconds that costs less than a microsecond to add to."""

from bisect import bisect_left
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily

from service.metrics.buckets import SECONDS

_BOUNDS = [*map(str, SECONDS), "+Inf"]


class Durations:
    """Durations by bucket; to be added to from one thread, and read from any."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * len(_BOUNDS)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Add one."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self._sum += seconds

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        """Show them under these labels."""
        up_to = accumulate(list(self._counts))
        buckets = [(bound, float(count)) for bound, count in zip(_BOUNDS, up_to, strict=True)]
        family.add_metric(labels, buckets, self._sum)
