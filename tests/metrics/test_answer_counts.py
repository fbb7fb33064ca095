"""Predictions are counted by calibration, for a limited number of calibrations."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from running_service import Scraped

from service.metrics.answers import MOST_BINS, AnswerCounts
from service.storage.calibration_queries import CalibrationRef

BINS = {1: (np.repeat([0, 2], [1, 2]).tolist(), 3)}


def count(counts, name="digits", *, bins=BINS, unlike=1, **abstained):
    ref = CalibrationRef(uuid.uuid5(uuid.NAMESPACE_OID, name), name, 1)
    counts.count(ref, rows=3, bins=bins, out_of_distribution=unlike, abstained=abstained)


def labels_of(name="digits"):
    return {
        "calibration": name,
        "version": "1",
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
    }


def read(counts) -> Scraped:
    registry = CollectorRegistry()
    registry.register(counts)
    return Scraped(generate_latest(registry).decode())


def test_answers_add_up_from_many_threads():
    counts = AnswerCounts()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(400):
            threads.submit(count, counts, risk=2)
    value, of = read(counts), labels_of()
    bins = [value("answers_total", **of, event="top1", bin=str(i)) for i in range(3)]
    assert bins == [400, 0, 800]
    assert value("calibration_rows_total", **of) == value("predict_rows_total") == 1200
    assert value("out_of_distribution_total", **of) == 400
    assert value("abstain_total", **of, max_risk="risk") == 800


def test_the_longest_unused_calibration_is_dropped_but_stays_in_the_total():
    """Flags are counted only where there are some."""
    counts, odd = AnswerCounts(most=2), 'a"b\\n\\"{}\n☃'
    for name in (odd, "b", odd, "c"):
        count(counts, name, unlike=None if name == odd else 0)
    value = read(counts)
    kept = {labels["calibration"] for labels in value.labels("answers_total")}
    assert (kept, value("predict_rows_total")) == ({odd, "c"}, 12)
    assert [of["calibration"] for of in value.labels("out_of_distribution_total")] == ["c"]
    count(counts, "b")
    assert read(counts)("calibration_rows_total", **labels_of("b")) == 3


def test_a_table_with_many_bins_has_no_series_of_each():
    counts = AnswerCounts()
    for name, n_bins in (("wide", MOST_BINS), ("all", MOST_BINS - 3)):
        count(counts, name, bins={**BINS, 5: ([0, 0, 0], n_bins)})
    value = read(counts)
    assert {labels["calibration"] for labels in value.labels("answers_total")} == {"all"}
    assert value("calibration_rows_total", **labels_of("wide")) == 3
