"""All metrics of one app: counted where things happen, rendered when somebody scrapes."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from service.metrics.answers import AnswerCounts
from service.metrics.families import Family, families_of
from service.metrics.jobs import JobMetrics
from service.metrics.lanes import LaneMetrics
from service.metrics.requests import RequestMetrics
from service.metrics.runs import RunMetrics
from service.metrics.sweeps import SweepMetrics

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """Every metric of one app, in a registry of its own; safe to use from many threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = RequestMetrics()
        self._registry.register(self.requests)
        self.lanes = LaneMetrics(self._registry)
        self.runs = RunMetrics(self._registry)
        self.answers = AnswerCounts()
        self.jobs = JobMetrics(self._registry)
        self.sweeps = SweepMetrics(self._registry)
        self._registry.register(self.answers)
        ProcessCollector(registry=self._registry)
        self._of_all: Callable[[], bytes] | None = None

    def render(self) -> bytes:
        """Return all of it in the text format of `CONTENT_TYPE`.

        Raises
        ------
        Overloaded
            If this is one of several processes, and what they counted cannot be had at this time.
        """
        if self._of_all is not None:
            return self._of_all()
        return generate_latest(_WithoutCreated(self._registry))

    def families(self) -> list[Family]:
        """Return what this process alone has to tell."""
        return families_of(_WithoutCreated(self._registry))

    def share(self, of_all: Callable[[], bytes]) -> None:
        """Render, from now on, what all processes of the service tell."""
        self._of_all = of_all


class _WithoutCreated(Collector):
    """A registry without the time at which each series began, half of all lines."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric
