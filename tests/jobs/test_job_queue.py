"""Claims, leases, progress and ends of jobs, on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select, update
from stored_rows import CalibrationJobs, EvaluationJobs, claimed, new_artifact

import models
from service.errors import Conflict
from service.jobs.queue import JobSignal, LeaseLost
from service.storage.tenants import ALL_TENANTS

EXPIRED = -1.0


@pytest.fixture
def dialect(combination) -> str:
    """Return the name of the database of a kind of jobs."""
    return combination[0]


def count(jobs, table):
    with jobs.database.reading(ALL_TENANTS) as session:
        return session.scalar(select(func.count()).select_from(table))


def decision(jobs, row):
    """Return a row of any other table."""
    names = {"tenant_id": row.tenant_id, "calibration_id": jobs.calibration_id(row)}
    return models.OperatingPoint(**names, number=1, author="somebody", reason="a test")


def expire(jobs):
    with jobs.database.session(ALL_TENANTS) as session:
        session.execute(update(jobs.table).values(lease_until=models.database_now(EXPIRED)))


def progress_of(row):
    return row.progress_stage, row.progress_done, row.progress_total, row.progress_rate


def test_the_oldest_is_claimed_first_and_each_once(jobs):
    rows = [jobs.put() for _ in range(3)]
    rows.sort(key=lambda row: (row.created_at, row.id.hex))
    queue = jobs.queue_of()
    claims = [claimed(queue) for _ in range(3)]
    assert [job.id for job in claims] == [row.id for row in rows]
    assert claims[0] == jobs.first_claim(rows[0])
    with jobs.database.session(ALL_TENANTS):  # idle workers do not wait for writers
        assert queue.claim() is None


def test_a_claim_leases_the_row_by_the_databases_clock_until_it_expires(jobs):
    row = jobs.put()
    queue = jobs.queue_of("first", lease_seconds=30)
    first = claimed(queue)
    stored = jobs.stored(row.id)
    assert (stored.status, stored.lease_owner, stored.attempt) == ("running", "first", 1)
    lease = (stored.lease_until - stored.started_at).total_seconds()
    assert lease == pytest.approx(30, abs=0.5)
    queue.report_progress(first, "fit", 3, 10, 2.0)
    assert jobs.queue_of("second").claim() is None
    expire(jobs)
    second = claimed(jobs.queue_of("second"))
    assert (second.id, second.attempt) == (first.id, 2)
    # A second attempt starts without the progress of the first.
    stored = jobs.stored(row.id)
    assert progress_of(stored) == (None, 0, 0, None)
    assert stored.claimed_at > stored.started_at


def test_renewing_and_progress_prolong_the_lease_and_tell_that_the_end_is_wanted(jobs):
    row = jobs.put()
    queue = jobs.queue_of("me", lease_seconds=30)
    job = claimed(queue)
    calls = (queue.renew, lambda job: queue.report_progress(job, "records", 3, 10, 1.5))
    for call in calls:
        expire(jobs)
        before = jobs.stored(row.id).lease_until
        assert call(job) is JobSignal.GO_ON
        assert (jobs.stored(row.id).lease_until - before).total_seconds() > 30
    assert progress_of(jobs.stored(row.id)) == ("records", 3, 10, 1.5)
    assert jobs.queue_of("other").claim() is None
    jobs.request_cancel(row)
    assert (jobs.stored(row.id).status, jobs.stored(row.id).cancel_requested) == ("running", True)
    assert [call(job) for call in calls] == [JobSignal.CANCEL] * 2
    assert queue.cancel(job)
    row = jobs.stored(row.id)
    assert (row.status, row.lease_owner, row.lease_until) == ("cancelled", None, None)
    assert row.finished_at is not None


def test_a_job_that_nobody_runs_ends_at_once_and_a_finished_one_cannot_be_cancelled(jobs):
    queued, abandoned = jobs.put(), jobs.put()
    for _ in range(2):
        jobs.request_cancel(queued)
        row = jobs.stored(queued.id)
        assert row.status == "cancelled"
        assert row.finished_at >= row.created_at
    assert claimed(jobs.queue_of("died", EXPIRED)).id == jobs.first_claim(abandoned).id
    jobs.request_cancel(abandoned)
    queue = jobs.queue_of()
    assert queue.claim() is None
    assert jobs.stored(abandoned.id).status == "cancelled"
    succeeded = jobs.put()
    queue.publish(claimed(queue), rows=[], artifacts=[], **jobs.result)
    failed = jobs.put()
    assert queue.fail(claimed(queue), {"title": "Test"})
    for row in (succeeded, failed):
        with pytest.raises(Conflict, match=jobs.stored(row.id).status):
            jobs.request_cancel(row)


def test_a_job_that_died_three_times_fails_and_the_next_one_is_claimed(jobs):
    row = jobs.put()
    for attempt in (1, 2, 3):
        queue = jobs.queue_of(f"owner-{attempt}", EXPIRED)
        job = claimed(queue)
        assert job.attempt == attempt
        queue.report_progress(job, "records", 1, 2)
    healthy = jobs.put()
    assert claimed(jobs.queue_of()).id == healthy.id
    row = jobs.stored(row.id)
    assert (row.status, row.attempt, row.lease_owner) == ("failed", 3, None)
    assert row.error["type"].endswith("worker-died")
    assert all(word in row.error["detail"] for word in (jobs.kind, "3", "'records'"))


def test_publishing_shows_everything_at_once_and_the_end_alone_is_news(jobs):
    row, queue = jobs.put(), jobs.queue_of()
    before = jobs.database.generation
    job = claimed(queue)
    assert queue.claim() is None
    queue.renew(job)
    queue.report_progress(job, "load", 1, 2)
    assert jobs.database.generation == before
    file = new_artifact(jobs.calibration_id(row), "records")
    queue.publish(job, rows=[decision(jobs, row)], artifacts=[file], **jobs.result)
    assert jobs.database.generation > before
    row = jobs.stored(row.id)
    assert {name: getattr(row, name) for name in jobs.result} == jobs.result
    assert (row.status, row.error, row.lease_owner) == ("succeeded", None, None)
    assert row.finished_at >= row.started_at >= row.created_at
    assert (count(jobs, models.OperatingPoint), count(jobs, models.Artifact)) == (1, 1)
    assert queue.claim() is None


def test_each_queue_claims_jobs_of_its_own_kind(database):
    calibrations, evaluations = CalibrationJobs(database), EvaluationJobs(database)
    further = evaluations.put()
    assert calibrations.queue_of().claim() is None
    row = calibrations.put()
    assert claimed(evaluations.queue_of()) == evaluations.first_claim(further)
    assert evaluations.queue_of().claim() is None
    job = claimed(calibrations.queue_of())
    assert job == calibrations.first_claim(row)
    assert evaluations.queue_of().renew(job) is JobSignal.LOST
    assert evaluations.queue_of("new").take_over() == 1
    assert calibrations.queue_of().renew(job) is JobSignal.GO_ON


def test_a_stale_owner_changes_nothing(jobs):
    row = jobs.put()
    stale_queue = jobs.queue_of("stale", EXPIRED)
    stale = claimed(stale_queue)
    queue = jobs.queue_of("new")
    job = claimed(queue)
    assert stale_queue.renew(stale) is JobSignal.LOST
    assert stale_queue.report_progress(stale, "fit", 9, 9) is JobSignal.LOST
    assert not stale_queue.fail(stale, {"title": "Stale"})
    assert not stale_queue.cancel(stale)
    assert not stale_queue.release(stale)
    with pytest.raises(LeaseLost):
        stale_queue.publish(stale, rows=[decision(jobs, row)], artifacts=[], **jobs.result)
    now = jobs.stored(row.id)
    assert (now.status, now.lease_owner, now.progress_stage) == ("running", "new", None)
    # So is the same owner with an older attempt.
    assert queue.renew(replace(job, attempt=1)) is JobSignal.LOST
    assert queue.renew(job) is JobSignal.GO_ON
    assert count(jobs, models.OperatingPoint) == 0
    queue.publish(job, rows=[decision(jobs, row)], artifacts=[], **jobs.result)
    assert not stale_queue.fail(stale, {"title": "Stale"})
    assert jobs.stored(row.id).status == "succeeded"


def test_a_job_that_is_handed_back_is_claimable_and_counts_no_death(jobs):
    row = jobs.put()
    for owner in ("a", "b", "c", "d"):
        queue = jobs.queue_of(owner)
        job = claimed(queue)
        assert job.attempt == 1
        assert queue.release(job)
        assert queue.renew(job) is JobSignal.LOST
    stored = jobs.stored(row.id)
    assert (stored.status, stored.attempt, stored.lease_owner) == ("queued", 0, None)
    # The owner is stale, though its number is given out again.
    new = jobs.queue_of("new")
    assert claimed(new) == job
    assert queue.renew(job) is JobSignal.LOST
    assert not queue.fail(job, {"title": "Stale"})
    assert new.renew(job) is JobSignal.GO_ON


def test_a_successor_takes_over_what_a_dead_owner_ran(jobs):
    running, queued = jobs.put(), jobs.put()
    dead = jobs.queue_of("dead", lease_seconds=3600)
    job = claimed(dead)
    successor = jobs.queue_of("successor")
    assert successor.take_over() == 1
    assert {claimed(successor).id, claimed(successor).id} == {running.id, queued.id}
    assert jobs.stored(job.id).attempt == 2
    assert dead.renew(job) is JobSignal.LOST
