"""Metrics of several processes are merged as if one process had counted."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from running_service import Scraped

from service.errors import Overloaded
from service.metrics.families import as_text, families_of
from service.metrics.metrics import Metrics
from service.metrics.shared import SharedMetrics, counts_of, merged

BUCKETS = (1.0, 2.0, 5.0)
Observed = list[tuple[str, float]]
observations = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 9).map(float)), max_size=12
)


class OneProcess:
    """A registry with one metric of each kind."""

    def __init__(self, seen: Observed = ()) -> None:
        self.registry = CollectorRegistry()
        by = {"labelnames": ["route"], "registry": self.registry}
        self.counter = Counter("howsure_seen", "Seen.", **by)
        self.histogram = Histogram("howsure_seconds", "Time.", buckets=BUCKETS, **by)
        self.gauge = Gauge("howsure_now", "Now.", **by)
        for route, value in seen:
            self.counter.labels(route).inc(value)
            self.histogram.labels(route).observe(value)
            self.gauge.labels(route).inc()

    def families(self) -> list:
        found = families_of(self.registry)
        for family in found:  # when each series began is not shown
            for series in [s for s in family.values if s[0].endswith("_created")]:
                del family.values[series]
        return found


def samples(families: list) -> dict:
    return {series: value for family in families for series, value in family.values.items()}


@given(st.lists(observations, min_size=1, max_size=4))
def test_merged_counts_are_those_of_one_process(seen: list[Observed]) -> None:
    apart = merged([OneProcess(found).families() for found in seen])
    together = OneProcess([one for found in seen for one in found]).families()

    assert samples(apart) == samples(together)
    assert [(f.name, f.type, f.documentation) for f in apart] == [
        (f.name, f.type, f.documentation) for f in together
    ]


def test_each_gauge_is_merged_by_its_meaning() -> None:
    processes = [Metrics(), Metrics()]
    for queued, metrics in enumerate(processes):
        metrics.jobs.show({("calibration", "queued"): queued + 3}, {"calibration": 2.5})
        metrics.runs.watch(lambda: 2)
    told = [metrics.families() for metrics in processes]
    first, second = samples(told[0]), samples(told[1])
    found = samples(merged(told))

    assert found["howsure_jobs", (("kind", "calibration"), ("status", "queued"))] == 3
    assert found["howsure_queue_age_seconds", (("kind", "calibration"),)] == 2.5
    assert found["howsure_database_up", ()] == 1
    assert found["howsure_models_loaded", ()] == 4
    start = ("process_start_time_seconds", ())
    assert found[start] == first[start] == second[start] > 0
    for name in ("process_open_fds", "process_max_fds", "process_resident_memory_bytes"):
        assert found[name, ()] == first[name, ()] + second[name, ()]
    # Those of jobs are of the scraped process, and left out if it has no database.
    processes[0].jobs.hide()
    found = Scraped(as_text(merged([metrics.families() for metrics in processes])).decode())
    assert found("database_up") == 0
    assert found.labels("jobs") == found.labels("queue_age_seconds") == []


@given(observations)
def test_a_restart_loses_no_count_and_keeps_no_gauge(seen: Observed) -> None:
    process = OneProcess(seen).families()

    assert samples(counts_of(process)) == {
        series: value for series, value in samples(process).items() if series[0] != "howsure_now"
    }


def test_processes_exchange_their_metrics_by_files_and_continue_them(tmp_path: Path) -> None:
    first, second = Metrics(), Metrics()
    of_first = SharedMetrics(first, tmp_path / "1")
    of_second = SharedMetrics(second, tmp_path / "2")
    of_second.write()
    for metrics in (first, second, second):
        count_rows(metrics, "digits", rows=5)
    assert rows_of(of_first) == {"digits": 5}  # the second has not written since
    assert rows_of(of_second) == {"digits": 15}
    assert rows_of(of_first) == {"digits": 15}
    for _ in range(2):  # each is a successor of the first
        metrics = Metrics()
        of_first = SharedMetrics(metrics, tmp_path / "1")
        count_rows(metrics, "digits", rows=5)
        of_first.write()
    assert rows_of(of_first) == {"digits": 25}


def test_gauges_of_a_process_that_is_gone_are_left_out(tmp_path: Path) -> None:
    here, gone = Metrics(), Metrics()
    for metrics in (here, gone):
        metrics.runs.watch(lambda: 2)
    count_rows(gone, "digits", rows=5)
    SharedMetrics(gone, tmp_path / "2").write()
    os.utime(tmp_path / "2", (0, 0))
    shared = SharedMetrics(here, tmp_path / "1")

    assert Scraped(shared.text().decode())("models_loaded") == 2
    assert rows_of(shared) == {"digits": 5}


def test_a_restart_keeps_so_many_calibrations() -> None:
    metrics = Metrics()
    names = ["first", "second", "third"]
    for name in names:
        count_rows(metrics, name, rows=1)
    for most in (1, 2):
        counts = samples(counts_of(metrics.families(), most))
        kept = {labels for series, labels in counts if series == "howsure_calibration_rows_total"}
        assert {dict(labels)["calibration"] for labels in kept} == set(names[:most])


def test_a_missing_folder_is_an_error_to_the_scraper(tmp_path: Path) -> None:
    shared = SharedMetrics(Metrics(), tmp_path / "none" / "1")
    with pytest.raises(Overloaded, match="cannot be exchanged"):
        shared.text()


def count_rows(metrics: Metrics, name: str, *, rows: int) -> None:
    metrics.answers.count(name, 1, rows=rows, bins={}, out_of_distribution=None, abstained={})


def rows_of(shared: SharedMetrics) -> dict[str, float]:
    found = Scraped(shared.text().decode())
    return {
        labels["calibration"]: found("calibration_rows_total", **labels)
        for labels in found.labels("calibration_rows_total")
    }
