"""The rate of a running job, and its report to the database."""

import time

import pytest
from sqlalchemy.exc import OperationalError
from stored_rows import claimed, queue_calibration, queue_of, stored

from service.jobs.progress import Progress, RecentRate

FAST = [("calibration", 1000 * second, float(second)) for second in range(61)]
SLOW = [("calibration", 60_000 + second, 60.0 + second) for second in range(1, 41)]
STALLED = [("fit", 0, 0.0), ("fit", 100, 10.0), ("fit", 100, 20.0)]
BEGUN_AGAIN = [("fit", 0, 0.0), ("fit", 10, 1.0), ("fit", 0, 1.5)]
NEW_STAGE = [*FAST[:6], ("evaluation", 5000, 5.1)]
# Stage, rows done and time of each report, and the rate after the last one.
CASES = {
    "unknown at first": ([("fit", 0, 100.0), ("fit", 128, 100.1)], None),
    "without an earlier attempt": ([("fit", 900_000, 5.0), ("fit", 900_200, 7.0)], 100),
    "unknown in a new stage": (NEW_STAGE, None),
    "of a new stage": ([*NEW_STAGE, ("evaluation", 5010, 6.1)], 10),
    "of a stage begun again": ([*BEGUN_AGAIN, ("fit", 4, 3.5)], 2),
    "of a minute": (FAST, 1000),
    "of the last half minute": (FAST + SLOW, 1),
    "of a job that waits": (STALLED, 5),
    "of a job that stands": ([*STALLED, *(("fit", 100, 20.0 + s) for s in range(1, 40))], 0),
}


@pytest.mark.parametrize(("reports", "expected"), CASES.values(), ids=CASES)
def test_the_rate(reports, expected) -> None:
    rate = RecentRate()
    last = [rate.seen(*report) for report in reports][-1]
    assert last == (None if expected is None else pytest.approx(expected))


def test_the_rate_of_the_stage_is_told_with_it(database) -> None:
    row, queue = queue_calibration(database), queue_of(database)
    progress = Progress(queue, claimed(queue), check=lambda: None)
    progress.report("calibration", 0, 1000, now=True)
    assert stored(database, row.id).progress_rate is None
    # As if the evaluation set had been begun a while ago, with some of it done before.
    progress.rate.seen("evaluation", 100, time.monotonic() - 10)
    progress.report("evaluation", 600, 1000, now=True)
    told = stored(database, row.id)
    assert (told.progress_stage, told.progress_done) == ("evaluation", 600)
    assert 0 < told.progress_rate <= 50


def test_a_report_that_cannot_be_written_stops_no_job(database, monkeypatch) -> None:
    """Its lease decides that; the next report is written again."""
    row, queue = queue_calibration(database), queue_of(database)
    progress = Progress(queue, claimed(queue), check=lambda: None)
    with monkeypatch.context() as away:
        away.setattr(database.engine, "begin", refuse_connections)
        away.setattr(database.engine, "connect", refuse_connections)
        progress.report("calibration", 1, 1000, now=True)
    progress.report("calibration", 2, 1000, now=True)
    assert stored(database, row.id).progress_done == 2


def refuse_connections(*_args: object, **_options: object) -> None:
    raise OperationalError("connect", None, Exception("no connection"))
