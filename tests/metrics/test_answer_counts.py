"""Predictions are counted by calibration, for a limited number of calibrations."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from running_service import Scraped

from service.metrics.answers import AnswerCounts


def count(counts, name="digits", version=1, *, bins=(1, 0, 2), unlike=1, abstained=None):
    counts.count(
        name,
        version,
        rows=sum(bins),
        bins={1: (np.repeat(range(len(bins)), bins).tolist(), len(bins))},
        out_of_distribution=unlike,
        abstained=abstained or {},
    )


def read(counts) -> Scraped:
    registry = CollectorRegistry()
    registry.register(counts)
    return Scraped(generate_latest(registry).decode())


def test_answers_add_up_from_many_threads():
    counts = AnswerCounts()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(400):
            threads.submit(count, counts, abstained={"0.05": 2})
    found = read(counts)
    of = {"calibration": "digits", "version": "1"}
    bins = [found("answers_total", **of, event="top1", bin=str(i)) for i in range(3)]
    assert bins == [400, 0, 800]
    assert found("calibration_rows_total", **of) == found("predict_rows_total") == 1200
    assert found("out_of_distribution_total", **of) == 400
    assert found("abstain_total", **of, max_risk="0.05") == 800


def test_versions_and_names_are_counted_apart_and_flags_only_where_there_are_some():
    counts = AnswerCounts()
    rows = {("a", 1): 3, ("a", 2): 6, ('a"b\\n\\"{}\n☃', 1): 9}
    for (name, version), n_rows in rows.items():
        count(counts, name, version, bins=(1, 0, n_rows - 1), unlike=None)
    found = read(counts)
    for (name, version), n_rows in rows.items():
        assert found("calibration_rows_total", calibration=name, version=str(version)) == n_rows
    assert found.labels("out_of_distribution_total") == []
    count(counts, "other", unlike=0)
    flagged = read(counts).labels("out_of_distribution_total")
    assert flagged == [{"calibration": "other", "version": "1"}]


def test_the_longest_unused_calibration_is_dropped_but_stays_in_the_total():
    counts = AnswerCounts(most=2)
    for name in ("a", "b", "a", "c"):
        count(counts, name)
    found = read(counts)
    kept = {labels["calibration"] for labels in found.labels("answers_total")}
    assert kept == {"a", "c"}
    assert found("predict_rows_total") == 12
    count(counts, "b")
    found = read(counts)
    assert found("calibration_rows_total", calibration="b", version="1") == 3
    kept = {labels["calibration"] for labels in found.labels("calibration_rows_total")}
    assert kept == {"b", "c"}
