from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from sqlalchemy import literal, select
from sqlalchemy.exc import StatementError
from stored_rows import queue_calibration

import models
from models import database_now
from service.storage.tenants import ALL_TENANTS


def test_the_databases_time_is_aware_and_that_of_this_machine_with_an_offset(database):
    rounding, offsets = timedelta(milliseconds=2), [-86_400, -30, -0.5, 0, 0.25, 9, 86_400 * 400]
    with database.reading(ALL_TENANTS) as session:
        for offset in offsets:
            before = datetime.now(UTC)
            now = session.scalar(select(database_now(offset))) - timedelta(seconds=offset)
            assert now.utcoffset() == timedelta(0)
            assert before - rounding <= now <= datetime.now(UTC) + rounding
        for smaller, larger in pairwise(offsets):
            assert session.scalar(select(database_now(smaller) < database_now(larger)))
        for seconds in (-60, 60):
            bound = literal(datetime.now(UTC) + timedelta(seconds=seconds), models.UtcDateTime())
            assert session.scalar(select(bound < database_now())) == (seconds < 0)


def test_times_pass_by_within_a_transaction(database):
    """A lease must not start before a wait for a lock did."""
    with database.session(ALL_TENANTS) as session:
        first = session.scalar(select(database_now()))
        while (second := session.scalar(select(database_now()))) == first:
            pass
    assert second > first


def test_a_time_in_another_zone_is_the_same_moment_and_one_without_is_refused(database):
    row = queue_calibration(database)
    moment = datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    with database.session(ALL_TENANTS) as session:
        session.get_one(models.Calibration, row.id).started_at = moment
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - the mistake under test
    with database.reading(ALL_TENANTS) as session:
        started_at = session.get_one(models.Calibration, row.id).started_at
        assert (started_at, started_at.utcoffset()) == (moment, timedelta(0))
        with pytest.raises(StatementError, match="zone"):
            session.scalar(select(literal(naive, models.UtcDateTime())))
