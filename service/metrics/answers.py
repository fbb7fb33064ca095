"""Predictions by calibration and bin, which show drift early."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

MOST_CALIBRATIONS = 50

Counts = NDArray[np.int64]


@dataclass
class _Answered:
    """Counts of one calibration: ``bins`` by event, the others by flag."""

    rows: int = 0
    out_of_distribution: int | None = None
    bins: dict[int, list[int]] = field(default_factory=dict)
    abstained: dict[str, int] = field(default_factory=dict)


class AnswerCounts(Collector):
    """Answered rows by calibration, event and bin; thread-safe.

    Beyond ``most`` calibrations the least recently used one is dropped; if used again, its counts
    start at 0, as after a restart.
    """

    def __init__(self, most: int = MOST_CALIBRATIONS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._rows = 0
        self._kept: OrderedDict[tuple[str, str], _Answered] = OrderedDict()

    def count(
        self,
        name: str,
        version: int,
        *,
        rows: int,
        bins: Mapping[int, tuple[Sequence[int], int]],
        out_of_distribution: int | None,
        abstained: Mapping[str, int],
    ) -> None:
        """Add the answers to one request.

        Parameters
        ----------
        bins
            Each row's bin and the number of bins, by k.
        out_of_distribution
            Number of flagged rows; None if the calibration flags none.
        abstained
            Number of rows with `abstain`, by maximum risk.
        """
        with self._lock:
            self._rows += rows
            found = self._of(name, str(version))
            found.rows += rows
            for k, (of_rows, n_bins) in bins.items():
                counts = found.bins.setdefault(k, [0] * n_bins)
                for index in of_rows:
                    counts[index] += 1
            if out_of_distribution is not None:
                found.out_of_distribution = (found.out_of_distribution or 0) + out_of_distribution
            for risk, flagged in abstained.items():
                found.abstained[risk] = found.abstained.get(risk, 0) + flagged

    def collect(self) -> Iterable[Metric]:
        """Return the current counters."""
        by = ["calibration", "version"]
        total = CounterMetricFamily("howsure_predict_rows", "Answered rows.")
        rows = CounterMetricFamily(
            "howsure_calibration_rows", "Answered rows by calibration.", labels=by
        )
        answers = CounterMetricFamily(
            "howsure_answers",
            "Answered rows by calibration, event and bin.",
            labels=[*by, "event", "bin"],
        )
        unlike = CounterMetricFamily(
            "howsure_out_of_distribution",
            "Answered rows that are unlike the calibration set.",
            labels=by,
        )
        abstain = CounterMetricFamily(
            "howsure_abstain",
            "Answered rows with `abstain`, by maximum risk.",
            labels=[*by, "max_risk"],
        )
        with self._lock:
            total.add_metric([], self._rows)
            for labels, found in self._kept.items():
                rows.add_metric(labels, found.rows)
                for k, counts in found.bins.items():
                    for index, count in enumerate(counts):
                        answers.add_metric([*labels, f"top{k}", str(index)], count)
                if found.out_of_distribution is not None:
                    unlike.add_metric(labels, found.out_of_distribution)
                for risk, count in found.abstained.items():
                    abstain.add_metric([*labels, risk], count)
        return [total, rows, answers, unlike, abstain]

    def _of(self, *labels: str) -> _Answered:
        found = self._kept.setdefault((labels[0], labels[1]), _Answered())
        self._kept.move_to_end((labels[0], labels[1]))
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found
