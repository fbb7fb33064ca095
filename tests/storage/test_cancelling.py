"""Both kinds of jobs are cancelled by the same rules."""

import pytest
from storage_jobs import JOB_KINDS
from storage_rows import claimed

from service.errors import Conflict
from service.jobs.queue import JobSignal


@pytest.fixture(params=JOB_KINDS, ids=lambda kind: kind.kind)
def jobs(request, database):
    return request.param(database)


def test_a_queued_job_ends_at_once_however_often_it_is_cancelled(jobs):
    row = jobs.put()
    for _ in range(2):
        jobs.request_cancel(row)
        found = jobs.stored(row.id)
        assert found.status == "cancelled"
        assert found.finished_at >= found.created_at
    assert jobs.queue_of().claim() is None


def test_the_owner_of_a_running_job_is_asked_to_stop(jobs):
    row, queue = jobs.put(), jobs.queue_of()
    job = claimed(queue)
    jobs.request_cancel(row)
    found = jobs.stored(row.id)
    assert (found.status, found.cancel_requested) == ("running", True)
    assert queue.renew(job) is JobSignal.CANCEL


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_finished_job_cannot_be_cancelled(jobs, status):
    row, queue = jobs.put(), jobs.queue_of()
    job = claimed(queue)
    if status == "succeeded":
        queue.publish(job, rows=[], artifacts=[], **jobs.result)
    else:
        assert queue.fail(job, {"title": "Test"})
    with pytest.raises(Conflict, match=f"has already {status}"):
        jobs.request_cancel(row)
