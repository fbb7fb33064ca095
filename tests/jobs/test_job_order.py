"""Tenants take turns, however many jobs one of them queues."""

import uuid
from collections import Counter
from functools import partial

import pytest
from databases import listening
from sqlalchemy import insert, select, update
from stored_rows import (
    add_tenant,
    at_once,
    claimed,
    queue_calibration,
    queue_of,
    tenant_of,
)

import models
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def dialect(combination) -> str:
    """Return the name of the database of a kind of jobs."""
    return combination[0]


MANY = 700


def queue_many(database, tenant_id: uuid.UUID, count: int) -> None:
    """Queue calibrations in one statement."""
    queue_calibration(database, tenant_id=tenant_id)
    alike = {"tenant_id": tenant_id, "name": "digits", "warnings": []}
    alike |= {"config": {}, "data": {}, "versions": {}}
    rows = [alike | {"id": uuid.uuid4(), "version": version} for version in range(2, count + 1)]
    if rows:
        with database.session(ALL_TENANTS) as session:
            session.execute(insert(models.Calibration), rows)


def test_who_has_the_fewest_running_comes_first(jobs) -> None:
    others = [add_tenant(jobs.database, name) for name in ("second", "third")]
    tenants = [tenant_of(jobs.database), *others]
    for tenant_id in tenants:
        for _ in range(3):
            jobs.put(tenant_id=tenant_id)
    queue = jobs.queue_of()
    found = [claimed(queue) for _ in range(6)]
    assert {job.tenant_id for job in found[:3]} == set(tenants)
    assert Counter(job.tenant_id for job in found) == dict.fromkeys(tenants, 2)
    # The first of these ends: its tenant has one running, the others two.
    assert queue.cancel(found[0])
    assert claimed(queue).tenant_id == found[0].tenant_id


def test_of_equals_who_was_served_longest_ago_comes_first(jobs) -> None:
    first, second, new = (add_tenant(jobs.database, name) for name in ("a", "b", "c"))
    queue = jobs.queue_of()
    for tenant_id in (first, second):
        jobs.put(tenant_id=tenant_id)
        assert queue.cancel(claimed(queue))
    for tenant_id in (second, first, new):
        jobs.put(tenant_id=tenant_id)
    order = []
    for _ in range(3):
        job = claimed(queue)
        order.append(job.tenant_id)
        assert queue.cancel(job)
    assert order == [new, first, second]


def test_an_abandoned_job_does_not_count_as_running(jobs) -> None:
    abandoned, other = (add_tenant(jobs.database, name) for name in ("abandoned", "other"))
    jobs.put(tenant_id=abandoned)
    first = claimed(jobs.queue_of("dead", -1.0))
    jobs.put(tenant_id=other)
    with jobs.database.session(ALL_TENANTS) as session:
        # Served later than the abandoned job.
        changed = update(jobs.table).where(jobs.table.tenant_id == other)
        session.execute(changed.values(claimed_at=models.database_now()))
    again = claimed(jobs.queue_of())
    assert (again.id, again.attempt) == (first.id, 2)


@pytest.mark.process
@pytest.mark.parametrize("combination", [("postgresql", None)])
def test_jobs_that_somebody_holds_are_passed_over(database) -> None:
    """The tenant whose turn it is has one job, and that is locked: it is another's turn."""
    mine, other = tenant_of(database), add_tenant(database, "other")
    queue_calibration(database, tenant_id=mine)
    held = queue_calibration(database, tenant_id=other)
    row = queue_calibration(database, tenant_id=mine)
    queue = queue_of(database)
    assert queue.cancel(claimed(queue))
    with database.session(ALL_TENANTS) as session:
        locking = select(models.Calibration).where(models.Calibration.id == held.id)
        session.execute(locking.with_for_update())
        assert claimed(queue).id == row.id
        assert queue.claim() is None
    assert claimed(queue).id == held.id


def test_claims_that_race_take_each_job_of_all_tenants_once(database) -> None:
    tenants = [tenant_of(database), *(add_tenant(database, f"t{i}") for i in range(4))]
    for count, tenant_id in zip((40, 5, 1, 3, 9), tenants, strict=True):
        queue_many(database, tenant_id, count)

    def work(number: int) -> list[uuid.UUID]:
        queue = queue_of(database, f"worker-{number}")
        return [job.id for job in iter(queue.claim, None)]

    taken = [job for found in at_once([partial(work, i) for i in range(8)]) for job in found]
    assert len(taken) == len(set(taken)) == 58
    assert queue_of(database).claim() is None


@pytest.mark.parametrize("combination", [("sqlite", None)])
def test_a_claim_reads_few_rows_of_thousands(database) -> None:
    busy, other = tenant_of(database), add_tenant(database, "other")
    queue_many(database, busy, 3 * MANY)
    queue_many(database, other, 3)
    queue, statements = queue_of(database), []
    claimed(queue)

    def listen(_connection, _cursor, statement, parameters, *_):
        if statement.startswith(("SELECT", "WITH")) and "calibration" in statement:
            statements.append((statement, parameters))

    with listening(database.engine, "before_cursor_execute", listen):
        claimed(queue)
    assert len(statements) == 4  # the first finds out whether there are any
    for statement, parameters in statements:
        with database.engine.connect() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
        steps = [row[-1] for row in plan]
        assert not [step for step in steps if step.startswith("SCAN calibration")]
        assert statement.startswith("WITH") or not [step for step in steps if "ORDER BY" in step]
