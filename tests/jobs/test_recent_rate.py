import pytest

from service.jobs.progress import RecentRate


def seen(rate: RecentRate, *moments: tuple[str, int, float]) -> float | None:
    """Return the rate after the last of several looks."""
    return [rate.seen(*moment) for moment in moments][-1]


def test_it_is_unknown_at_first() -> None:
    rate = RecentRate()
    assert seen(rate, ("calibration", 0, 100.0), ("calibration", 128, 100.1)) is None
    assert seen(rate, ("calibration", 640, 100.5)) == pytest.approx(1280)


def test_what_an_earlier_attempt_has_done_does_not_count() -> None:
    assert seen(RecentRate(), ("fit", 900_000, 5.0), ("fit", 900_200, 7.0)) == pytest.approx(100)


def test_a_new_stage_begins_anew() -> None:
    rate = RecentRate()
    seen(rate, ("calibration", 0, 0.0), ("calibration", 5000, 5.0))
    assert seen(rate, ("evaluation", 5000, 5.1)) is None
    assert seen(rate, ("evaluation", 5010, 6.1)) == pytest.approx(10)


def test_the_same_stage_over_again_begins_anew() -> None:
    rate = RecentRate()
    seen(rate, ("fit", 0, 0.0), ("fit", 10, 1.0))
    assert seen(rate, ("fit", 0, 1.5)) is None
    assert seen(rate, ("fit", 4, 3.5)) == pytest.approx(2)


def test_only_the_last_half_minute_counts() -> None:
    rate = RecentRate()
    fast = [("calibration", 1000 * second, float(second)) for second in range(61)]
    slow = [("calibration", 60_000 + second, 60.0 + second) for second in range(1, 41)]
    assert seen(rate, *fast) == pytest.approx(1000)
    assert seen(rate, *slow) == pytest.approx(1)


def test_many_looks_take_no_more_room_than_few() -> None:
    rate = RecentRate()
    assert seen(rate, *(("fit", n, n / 1000) for n in range(100_000))) == pytest.approx(1000)
    assert len(rate._seen) < 200


def test_a_job_that_waits_gets_slower_until_it_stands() -> None:
    rate = RecentRate()
    assert seen(rate, ("fit", 0, 0.0), ("fit", 100, 10.0), ("fit", 100, 20.0)) == pytest.approx(5)
    waits = [("fit", 100, 20.0 + second) for second in range(1, 40)]
    assert seen(rate, *waits) == 0
