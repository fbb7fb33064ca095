import time
import uuid
from functools import partial

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from storage_rows import (
    claimed,
    new_artifact,
    queue_calibration,
    queue_of,
    stored,
    tenant_of,
)
from storage_threads import at_once

import models
from service.storage.calibrations import CalibrationRepository
from service.storage.job_queue import ClaimedJob, JobSignal, LeaseLost

EXPIRED = -1.0


def request_cancel(database, calibration_id):
    with database.session() as session:
        CalibrationRepository(session, tenant_of(database)).request_cancel(calibration_id)


def count(database, table):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


def score(row, **columns):
    defaults = {
        "tenant_id": row.tenant_id,
        "calibration_id": row.id,
        "k": 1,
        "subject_kind": "measure",
        "subject": "margin",
        "phase": "evaluation",
        "name": "nll",
        "value": 0.25,
    }
    return models.Score(**(defaults | columns))


def test_an_empty_queue_gives_nothing(database):
    assert queue_of(database).claim() is None


def test_the_oldest_is_claimed_first_and_each_once(database):
    rows = [queue_calibration(database) for _ in range(3)]
    rows.sort(key=lambda row: (row.created_at, row.id.hex))
    queue = queue_of(database)
    jobs = [claimed(queue) for _ in range(3)]
    assert [job.calibration_id for job in jobs] == [row.id for row in rows]
    assert jobs[0] == ClaimedJob(rows[0].id, rows[0].tenant_id, attempt=1)
    assert queue.claim() is None


def test_a_claim_marks_the_row_and_leases_it_by_the_databases_clock(database):
    row = queue_calibration(database)
    queue_of(database, "me", lease_seconds=30).claim()
    row = stored(database, row.id)
    assert (row.status, row.lease_owner, row.attempt) == ("running", "me", 1)
    lease = (row.lease_until - row.started_at).total_seconds()
    assert lease == pytest.approx(30, abs=0.5)


def test_claims_that_race_take_each_job_once(database):
    created = {queue_calibration(database).id for _ in range(24)}

    def work(number):
        queue = queue_of(database, f"worker-{number}")
        return list(iter(queue.claim, None))

    jobs = [job for found in at_once([partial(work, i) for i in range(8)]) for job in found]
    assert sorted(job.calibration_id for job in jobs) == sorted(created)
    assert {job.attempt for job in jobs} == {1}


def test_a_job_whose_lease_runs_is_not_claimed_and_one_whose_lease_expired_is(database):
    queue_calibration(database)
    first = claimed(queue_of(database, "first", lease_seconds=60))
    assert queue_of(database, "second").claim() is None
    with database.session() as session:
        session.execute(update(models.Calibration).values(lease_until=models.database_now(-0.01)))
    second = claimed(queue_of(database, "second"))
    assert second.calibration_id == first.calibration_id
    assert second.attempt == 2


def test_a_lease_expires_as_time_passes(database):
    queue_calibration(database)
    claimed(queue_of(database, "first", lease_seconds=0.3))
    other = queue_of(database, "second")
    assert other.claim() is None
    time.sleep(0.35)
    assert claimed(other).attempt == 2


def test_renewing_prolongs_the_lease(database):
    row = queue_calibration(database)
    queue = queue_of(database, "me", lease_seconds=30)
    job = claimed(queue)
    with database.session() as session:
        session.execute(update(models.Calibration).values(lease_until=models.database_now(EXPIRED)))
    before = stored(database, row.id).lease_until
    assert queue.renew(job) is JobSignal.GO_ON
    assert (stored(database, row.id).lease_until - before).total_seconds() > 30
    assert queue_of(database, "other").claim() is None


def test_progress_is_seen_and_prolongs_the_lease(database):
    row = queue_calibration(database)
    queue = queue_of(database)
    job = claimed(queue)
    before = stored(database, row.id).lease_until
    time.sleep(0.002)
    assert queue.report_progress(job, "records", 3, 10) is JobSignal.GO_ON
    row = stored(database, row.id)
    assert (row.progress_stage, row.progress_done, row.progress_total) == ("records", 3, 10)
    assert row.lease_until > before


def test_a_second_attempt_starts_without_the_progress_of_the_first(database):
    row = queue_calibration(database)
    first = queue_of(database, "first", EXPIRED)
    first.report_progress(claimed(first), "fit", 3, 10)
    claimed(queue_of(database, "second"))
    row = stored(database, row.id)
    assert (row.progress_stage, row.progress_done, row.progress_total) == (None, 0, 0)


def test_the_owner_is_told_that_the_end_is_wanted(database):
    row = queue_calibration(database)
    queue = queue_of(database)
    job = claimed(queue)
    request_cancel(database, row.id)
    assert queue.renew(job) is JobSignal.CANCEL
    assert queue.report_progress(job, "fit", 1, 2) is JobSignal.CANCEL
    assert queue.cancel(job)
    row = stored(database, row.id)
    assert (row.status, row.lease_owner, row.lease_until) == ("cancelled", None, None)
    assert row.finished_at is not None


def test_a_cancelled_job_whose_owner_died_is_not_run_again(database):
    row = queue_calibration(database)
    claimed(queue_of(database, "first", EXPIRED))
    request_cancel(database, row.id)
    assert queue_of(database, "second").claim() is None
    assert stored(database, row.id).status == "cancelled"


def test_a_job_that_died_three_times_fails_and_the_next_one_is_claimed(database):
    row = queue_calibration(database)
    for attempt in (1, 2, 3):
        queue = queue_of(database, f"owner-{attempt}", EXPIRED)
        job = claimed(queue)
        assert job.attempt == attempt
        queue.report_progress(job, "records", 1, 2)
    healthy = queue_calibration(database)
    assert claimed(queue_of(database)).calibration_id == healthy.id
    row = stored(database, row.id)
    assert (row.status, row.attempt, row.lease_owner) == ("failed", 3, None)
    assert row.error["detail"] == (
        "The process that ran this calibration died 3 times, last seen in stage 'records'."
    )


def test_publishing_shows_everything_at_once(database):
    row = queue_calibration(database)
    queue = queue_of(database)
    job = claimed(queue)
    queue.publish(
        job,
        rows=[score(row)],
        artifacts=[new_artifact(row.id, "records")],
        accuracy={"1": 0.9},
        serve={"1": "margin"},
        warnings=["few samples"],
    )
    row = stored(database, row.id)
    assert (row.status, row.accuracy, row.serve) == ("succeeded", {"1": 0.9}, {"1": "margin"})
    assert (row.warnings, row.error, row.lease_owner) == (["few samples"], None, None)
    assert row.finished_at >= row.started_at >= row.created_at
    assert (count(database, models.Score), count(database, models.Artifact)) == (1, 1)
    assert queue.claim() is None


def test_a_result_that_breaks_a_rule_leaves_nothing_behind(database):
    row = queue_calibration(database)
    queue = queue_of(database)
    job = claimed(queue)
    with pytest.raises(IntegrityError, match="ck_score_k"):
        queue.publish(job, rows=[score(row), score(row, name="ece", k=0)], artifacts=[])
    assert stored(database, row.id).status == "running"
    assert count(database, models.Score) == 0
    assert queue.fail(job, {"title": "Internal error"})


def test_failing_keeps_the_reason(database):
    row = queue_calibration(database)
    queue = queue_of(database)
    assert queue.fail(claimed(queue), {"title": "Deadline exceeded"})
    row = stored(database, row.id)
    assert (row.status, row.error) == ("failed", {"title": "Deadline exceeded"})


def test_a_stale_owner_changes_nothing(database):
    row = queue_calibration(database)
    stale_queue = queue_of(database, "stale", EXPIRED)
    stale = claimed(stale_queue)
    queue = queue_of(database, "new")
    job = claimed(queue)
    assert stale_queue.renew(stale) is JobSignal.LOST
    assert stale_queue.report_progress(stale, "fit", 9, 9) is JobSignal.LOST
    assert not stale_queue.fail(stale, {"title": "Stale"})
    assert not stale_queue.cancel(stale)
    assert not stale_queue.release(stale)
    with pytest.raises(LeaseLost):
        stale_queue.publish(stale, rows=[score(row)], artifacts=[], accuracy={})
    now = stored(database, row.id)
    assert (now.status, now.lease_owner, now.progress_stage) == ("running", "new", None)
    assert count(database, models.Score) == 0
    queue.publish(job, rows=[score(row)], artifacts=[], accuracy={"1": 1.0})
    assert not stale_queue.fail(stale, {"title": "Stale"})
    assert stored(database, row.id).status == "succeeded"


def test_the_same_owner_with_an_older_attempt_is_stale_too(database):
    queue_calibration(database)
    queue = queue_of(database, "same", EXPIRED)
    first, second = claimed(queue), claimed(queue)
    assert queue.renew(first) is JobSignal.LOST
    assert queue.renew(second) is JobSignal.GO_ON


def test_a_job_that_is_handed_back_is_claimable_and_counts_no_death(database):
    row = queue_calibration(database)
    for owner in ("a", "b", "c", "d", "e"):
        queue = queue_of(database, owner)
        job = claimed(queue)
        assert job.attempt == 1
        assert queue.release(job)
        assert queue.renew(job) is JobSignal.LOST
    row = stored(database, row.id)
    assert (row.status, row.attempt, row.lease_owner) == ("queued", 0, None)


def test_an_owner_that_handed_a_job_back_is_stale_though_its_number_is_given_out_again(database):
    queue_calibration(database)
    first = queue_of(database, "first")
    handed_back = claimed(first)
    first.release(handed_back)
    second = queue_of(database, "second")
    job = claimed(second)
    assert job == handed_back
    assert first.renew(handed_back) is JobSignal.LOST
    assert not first.fail(handed_back, {"title": "Stale"})
    assert second.renew(job) is JobSignal.GO_ON


def test_a_successor_takes_over_what_a_dead_owner_ran(database):
    running, queued = queue_calibration(database), queue_calibration(database)
    dead = queue_of(database, "dead", lease_seconds=3600)
    job = claimed(dead)
    successor = queue_of(database, "successor")
    assert successor.take_over() == 1
    jobs = {claimed(successor).calibration_id, claimed(successor).calibration_id}
    assert jobs == {running.id, queued.id}
    assert stored(database, job.calibration_id).attempt == 2
    assert dead.renew(job) is JobSignal.LOST


def test_jobs_of_every_tenant_are_claimed(database):
    other = uuid.uuid4()
    with database.session() as session:
        session.add(models.Tenant(id=other, name="other"))
    row = queue_calibration(database, tenant_id=other)
    job = claimed(queue_of(database))
    assert (job.calibration_id, job.tenant_id) == (row.id, other)
