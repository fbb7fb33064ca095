"""Metrics as plain values, to be sent from one process to another."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

Labels: TypeAlias = tuple[tuple[str, str], ...]
Series: TypeAlias = tuple[str, Labels]


class Family(msgspec.Struct, frozen=True):
    """All series of one metric with their values, in the order in which they are shown."""

    name: str
    documentation: str
    type: str
    values: dict[Series, float]


def families_of(collector: Collector) -> list[Family]:
    """Return what a collector has to tell now."""
    return [
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            {
                (sample.name, tuple(sample.labels.items())): sample.value
                for sample in metric.samples
            },
        )
        for metric in collector.collect()
    ]


def as_text(families: Sequence[Family]) -> bytes:
    """Return the families as a scraper reads them."""
    return generate_latest(_Collected(families))


class _Collected(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return map(_metric, self._families)


def _metric(family: Family) -> Metric:
    metric = Metric(family.name, family.documentation, family.type)
    for name, labels, value in _samples(family):
        metric.add_sample(name, labels, value)
    return metric


def _samples(family: Family) -> Iterator[tuple[str, dict[str, str], float]]:
    for (name, labels), value in family.values.items():
        yield name, dict(labels), value
