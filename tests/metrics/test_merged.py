"""What several processes count is merged as if one had counted it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from scraped import Scraped

from service.metrics import Metrics, Tally
from service.metrics.families import as_text, families_of
from service.metrics.merged import fallen, merged

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
def test_it_is_what_one_process_would_have_counted(seen: list[Observed]) -> None:
    apart = merged([OneProcess(found).families() for found in seen])
    together = OneProcess([one for found in seen for one in found]).families()

    assert samples(apart) == samples(together)
    assert [(f.name, f.type, f.documentation) for f in apart] == [
        (f.name, f.type, f.documentation) for f in together
    ]


def test_it_is_read_as_prometheus_reads_it() -> None:
    text = as_text(merged([OneProcess([("a", 1.5)]).families(), OneProcess([("a", 3)]).families()]))
    found = Scraped(text.decode())

    assert found("seen_total", route="a") == 4.5
    buckets = [found("seconds_bucket", route="a", le=le) for le in ("1.0", "2.0", "5.0", "+Inf")]
    assert buckets == [0, 1, 2, 2]
    assert found("now", route="a") == 2


def test_every_gauge_is_joined_by_its_meaning() -> None:
    processes = [Metrics(), Metrics()]
    for queued, metrics in enumerate(processes):
        metrics.jobs.show({("calibration", "queued"): queued + 3})
        metrics.runs.watch(lambda: 2)
    told = [metrics.families() for metrics in processes]
    first, second = samples(told[0]), samples(told[1])
    found = samples(merged(told))

    assert found["howsure_jobs", (("kind", "calibration"), ("status", "queued"))] == 3
    assert found["howsure_database_up", ()] == 1
    assert found["howsure_models_loaded", ()] == 4
    start = ("process_start_time_seconds", ())
    assert found[start] == first[start] == second[start] > 0
    for name in ("process_open_fds", "process_max_fds", "process_resident_memory_bytes"):
        assert found[name, ()] == first[name, ()] + second[name, ()]


def test_jobs_are_left_out_while_the_database_is_away_from_who_is_asked() -> None:
    asked, other = Metrics(), Metrics()
    asked.jobs.show(None)
    other.jobs.show({("calibration", "queued"): 3})
    found = Scraped(as_text(merged([asked.families(), other.families()])).decode())

    assert found("database_up") == 0
    assert not found.labels("jobs")


@given(observations, observations)
def test_only_what_began_anew_has_fallen(before: Observed, more: Observed) -> None:
    told = OneProcess(before).families()

    assert fallen(told, OneProcess(before + more).families()) == []
    lost = samples(fallen(told, []))
    assert lost == {
        series: value
        for series, value in samples(told).items()
        if value > 0 and series[0] != "howsure_now"
    }


@given(st.lists(st.tuples(st.integers(0, 2), observations), min_size=1, max_size=6))
def test_no_count_falls_when_processes_die(lives: list[tuple[int, Observed]]) -> None:
    tally = Tally()
    asking = 99
    tally.tell(asking, OneProcess().families())
    seen: Observed = []
    for process, found in lives:  # each dies when the next takes its place
        tally.end(process)
        tally.tell(process, OneProcess(found).families())
        seen += found
    now = Scraped(tally.text(asking).decode())
    expected = Scraped(as_text(OneProcess(seen).families()).decode())

    for name in ("seen_total", "seconds_count", "seconds_sum"):
        for labels in expected.labels(name):
            assert now(name, **labels) == expected(name, **labels)


def answered(*names: str, rows: int = 1) -> list:
    metrics = Metrics()
    for name in names:
        metrics.answers.count(name, 1, rows=rows, bins={}, out_of_distribution=None, abstained={})
    return metrics.families()


def rows_of(tally: Tally, asking: int) -> dict[str, float]:
    found = Scraped(tally.text(asking).decode())
    return {
        labels["calibration"]: found("calibration_rows_total", **labels)
        for labels in found.labels("calibration_rows_total")
    }


def test_a_calibration_that_one_process_dropped_is_still_counted_whole() -> None:
    tally = Tally()
    tally.tell(1, answered("old", rows=5))
    tally.tell(2, answered("old", rows=7))
    tally.tell(1, answered("new"))

    assert rows_of(tally, 2) == {"old": 12, "new": 1}


@pytest.mark.parametrize("most", [1, 2])
def test_of_calibrations_that_nobody_tells_of_the_last_are_kept(most: int) -> None:
    tally = Tally(most)
    tally.tell(1, answered("held"))
    for process, name in enumerate(("first", "held", "second", "third"), start=2):
        tally.tell(process, answered(name))
        tally.end(process)

    kept = {"third", "second"} if most == 2 else {"third"}
    assert rows_of(tally, 1) == dict.fromkeys(kept, 1) | {"held": 2}
    assert Scraped(tally.text(1).decode())("predict_rows_total") == 5
