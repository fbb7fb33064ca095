"""PostgreSQL shows a transaction the rows of its tenant, whatever the query says."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from schema_rows import EVALUATION_ID, HEAD_ROWS, TENANT_ID
from sqlalchemy.exc import DataError, IntegrityError, MultipleResultsFound, ProgrammingError
from sqlalchemy.orm import Session
from tenant_separation import (
    TABLES,
    fill_with_twins,
    forgotten_tenants,
    tenant_column,
    twin_of,
)

import models
from service.errors import NotFound
from service.storage.artifact_rows import ExportRepository, shared_copies
from service.storage.audit_log import audit_page
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database, bypasses_row_security, open_database
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import tables_of
from service.storage.idempotency_keys import KeyedRequest, is_committed, made_before
from service.storage.operating_points import OperatingPointRepository
from service.storage.overview import job_rows, name_rows
from service.storage.tenants import (
    ALL_TENANTS,
    TenantScope,
    set_tenant,
    stored_bytes,
    unfinished_jobs,
)

pytestmark = pytest.mark.process

OURS = twin_of(TENANT_ID)
THEIRS = HEAD_ROWS["calibration"][0]["id"]
THEIRS_OTHER = HEAD_ROWS["calibration"][1]["id"]
THEIRS_QUEUED = HEAD_ROWS["calibration"][3]["id"]
THEIR_REQUEST = KeyedRequest(HEAD_ROWS["idempotency_key"][0]["key"], "0" * 64)


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@pytest.fixture
def database(database: Database) -> Database:
    """Our tenant, its twin and two more."""
    fill_with_twins(database)
    return database


Rows = dict[str, dict[uuid.UUID, list[sa.Row[Any]]]]


@pytest.fixture
def rows(database: Database) -> Rows:
    """All rows by table and tenant; each table has rows of two tenants or more."""
    found: Rows = {}
    with database.reading(ALL_TENANTS) as session:
        for table in TABLES:
            of_tenants = found.setdefault(table.name, {})
            for row in session.execute(sa.select(table)):
                owner = row._mapping[tenant_column(table)]
                of_tenants.setdefault(owner, []).append(row)
            assert len(of_tenants) >= 2, table.name
    return found


@contextmanager
def raw(database: Database) -> Iterator[sa.Connection]:
    """Open a transaction that names no tenant."""
    with database.engine.connect() as connection, connection.begin():
        yield connection


def test_a_query_of_everything_returns_the_rows_of_the_tenant(database, rows) -> None:
    assert len(rows["tenant"]) == 4
    assert not bypasses_row_security(database), "the owner of the tables, who is not exempt"
    for tenant_id in rows["tenant"]:
        with database.reading(tenant_id) as session:
            for table in TABLES:
                of_tenant = rows[table.name].get(tenant_id, [])
                assert in_order(session.execute(sa.select(table)).all()) == in_order(of_tenant)


def in_order(found: Sequence[sa.Row[Any]]) -> list[str]:
    return sorted(map(str, found))


def test_a_transaction_without_a_tenant_sees_no_rows(database, rows) -> None:
    """Whatever the connection was used for before."""
    fresh = open_database(database.engine.url.render_as_string(hide_password=False))
    for before in (ALL_TENANTS, OURS, None):
        with raw(fresh) as connection:
            for table in TABLES:
                assert rows[table.name]
                assert connection.execute(sa.select(table)).all() == []
                assert connection.execute(unchanged(table)).rowcount == 0
        if before is not None:
            with fresh.reading(before) as session:
                assert session.scalars(sa.select(models.Calibration.id)).all()
    assert fresh.engine.pool.checkedin() == 1, "not one and the same connection"
    with raw(fresh) as connection:
        set_tenant(connection, "nobody")
        with pytest.raises(DataError, match="uuid"):
            connection.execute(sa.select(models.Calibration.id)).all()
    fresh.dispose()


def unchanged(table: sa.Table) -> sa.Update:
    """Return a statement that writes every row of a table as it is."""
    column = tenant_column(table)
    return sa.update(table).values({column: column})


# Of these, a trigger refuses all, or adds some.
MAY_CHANGE = [table for table in TABLES if table.name not in ("audit_entry", "released_file")]


def test_a_row_of_another_tenant_is_neither_added_nor_taken(database, rows) -> None:
    for table in TABLES:
        ours, theirs = list(rows[table.name])[:2]
        row = dict(rows[table.name][theirs][0]._mapping)
        statements = [sa.insert(table).values(row)]
        if table in MAY_CHANGE:
            statements.append(sa.update(table).values({tenant_column(table): theirs}))
        for statement in statements:
            with (
                pytest.raises(ProgrammingError, match="violates row-level security policy"),
                database.session(ours) as session,
            ):
                session.execute(statement)


def test_changes_and_deletions_of_all_leave_the_rows_of_other_tenants(database, rows) -> None:
    with database.session(OURS) as session:
        for table in reversed(MAY_CHANGE):
            own = len(rows[table.name].get(OURS, []))
            assert session.execute(unchanged(table)).rowcount == own
            if table.name != "tenant":  # the audit table names it
                assert session.execute(sa.delete(table)).rowcount == own
    with database.reading(ALL_TENANTS) as session:
        for table in MAY_CHANGE:
            left = [row for owner, of in rows[table.name].items() if owner != OURS for row in of]
            own = rows["tenant"][OURS] if table.name == "tenant" else []
            assert in_order(session.execute(sa.select(table)).all()) == in_order(left + own)


calibrations = partial(CalibrationRepository, tenant_id=OURS)
evaluations = partial(EvaluationRepository, tenant_id=OURS)


# What the service does for our tenant, most of it with ids of another.
WORKS: dict[str, Callable[[Session], object]] = {
    "get": lambda s: calibrations(s).get(THEIRS).id,
    "find": lambda s: calibrations(s).find(str(THEIRS)).id,
    "resolve": lambda s: calibrations(s).resolve(f"{THEIRS}"),
    "states": lambda s: calibrations(s).states(),
    "page": lambda s: sorted(row.id for row in calibrations(s).page(limit=100)[0]),
    "promote": lambda s: calibrations(s).promote(THEIRS).id,
    "evaluate": lambda s: evaluations(s).add(new_evaluation(), []).calibration_id,
    "cancel": lambda s: calibrations(s).request_cancel(THEIRS_QUEUED).id,
    "refit": lambda s: calibrations(s).add_refit(THEIRS, new_calibration()).refit_of,
    "delete": lambda s: calibrations(s).delete(THEIRS_OTHER),
    "evaluation": lambda s: evaluations(s).get(THEIRS, "rotated").id,
    "evaluation by id": lambda s: evaluations(s).by_id(EVALUATION_ID).id,
    "evaluations": lambda s: [row.id for row in evaluations(s).of_calibration(THEIRS)],
    "cancel evaluation": lambda s: evaluations(s).request_cancel(THEIRS, "dark").id,
    "delete evaluation": lambda s: evaluations(s).delete(THEIRS, "rotated"),
    "tables": lambda s: [row.id for row in tables_of(s, OURS, THEIRS)],
    "operating points": lambda s: len(
        OperatingPointRepository(s, OURS).history(THEIRS, before=None, limit=9)
    ),
    "export": lambda s: ExportRepository(s, OURS).find(THEIRS),
    "shared files": lambda s: len(shared_copies(s, OURS, THEIRS, uuid.uuid4())),
    "request": lambda s: made_before(s, OURS, THEIR_REQUEST),
    "key of request": lambda s: is_committed(s, OURS, THEIR_REQUEST.key),
    "names": lambda s: [row.n_versions for row in name_rows(s, OURS, limit=100)],
    "jobs": lambda s: sorted(row.calibration_id for row in job_rows(s, OURS, limit=100)),
    "stored bytes": lambda s: stored_bytes(s, OURS),
    "unfinished jobs": lambda s: unfinished_jobs(s, OURS),
    "audit log": lambda s: sorted(row.id for row in audit_page(s, OURS, limit=100, only={})[0]),
}


def new_calibration() -> models.Calibration:
    return models.Calibration(id=uuid.uuid4(), config={}, warnings=[])


def new_evaluation() -> models.Evaluation:
    columns = {"name": "new", "labelled": True, "data": {}}
    return models.Evaluation(id=uuid.uuid4(), calibration_id=THEIRS, **columns)


def result(database: Database, tenant: TenantScope, work: Callable[[Session], object]) -> object:
    """Return what a work returns or how it is refused; undo what it changes."""
    with database.session(tenant) as session:
        try:
            returned = work(session)
        except (NotFound, MultipleResultsFound, IntegrityError) as refused:
            returned = type(refused)
        session.rollback()
    return returned


def test_queries_and_policies_each_separate_tenants(database) -> None:
    """Either is enough alone; without both, each of these would do something else."""
    for name, work in WORKS.items():
        by_query = result(database, ALL_TENANTS, work)
        with forgotten_tenants() as shortened:
            by_policy = result(database, OURS, work)
            by_neither = result(database, ALL_TENANTS, work)
        assert shortened, name
        assert by_query == by_policy, name
        assert by_neither != by_policy, name
