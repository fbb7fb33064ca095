"""The progress of a job in its resource."""

import pytest

from service.http.job_events import progress_of
from service.storage.overview import JobView


@pytest.mark.parametrize(
    ("done", "total", "rate", "eta"),
    [
        (2500, 5000, 1250.0, 2.0),
        (5000, 5000, 1250.0, 0.0),
        (2500, 5000, None, None),
        (2500, 5000, 0.0, None),
        (2500, 0, 1250.0, None),
        (0, 3, 0.001, 3000.0),
    ],
)
def test_the_remaining_time_follows_from_the_rate(done, total, rate, eta) -> None:
    found = progress_of(JobView("running", "calibration", done, total, rate))
    assert (found.stage, found.done, found.total) == ("calibration", done, total)
    assert (found.rows_per_second, found.eta_seconds) == (rate, eta)


@pytest.mark.parametrize("status", ["queued", "succeeded", "failed", "cancelled"])
def test_a_job_that_does_not_run_has_no_progress(status) -> None:
    assert progress_of(JobView(status, "fit", 1, 2, 3.0)) is None
    assert progress_of(JobView("running", None, 0, 0, None)) is None
