"""Predictions by calibration and bin, which show drift early."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from service.storage.calibration_queries import CalibrationRef

MOST_CALIBRATIONS = 50
# A calibration with more bins in all its events is not counted by bin: a scrape would have to
# render, and Prometheus to keep, a series of each.
MOST_BINS = 1000


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
        self._kept: OrderedDict[CalibrationRef, _Answered] = OrderedDict()

    def count(
        self,
        ref: CalibrationRef,
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
            answered = self._kept.setdefault(ref, _Answered())
            self._kept.move_to_end(ref)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            answered.rows += rows
            is_wide = sum(n_bins for _, n_bins in bins.values()) > MOST_BINS
            for k, (of_rows, n_bins) in () if is_wide else bins.items():
                counts = answered.bins.setdefault(k, [0] * n_bins)
                for index in of_rows:
                    counts[index] += 1
            if out_of_distribution is not None:
                answered.out_of_distribution = (
                    answered.out_of_distribution or 0
                ) + out_of_distribution
            for risk, flagged in abstained.items():
                answered.abstained[risk] = answered.abstained.get(risk, 0) + flagged

    def collect(self) -> Iterable[Metric]:
        """Return the current counters."""
        by = ["calibration", "version", "id"]
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
        with self._lock:  # for which the event loop waits
            total.add_metric([], self._rows)
            kept = deepcopy(self._kept)
        for ref, answered in kept.items():
            labels = [ref.name, str(ref.version), str(ref.id)]
            rows.add_metric(labels, answered.rows)
            for k, counts in answered.bins.items():
                for index, count in enumerate(counts):
                    answers.add_metric([*labels, f"top{k}", str(index)], count)
            if answered.out_of_distribution is not None:
                unlike.add_metric(labels, answered.out_of_distribution)
            for risk, count in answered.abstained.items():
                abstain.add_metric([*labels, risk], count)
        return [total, rows, answers, unlike, abstain]
