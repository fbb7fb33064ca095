"""The rules that the database itself keeps.

Both databases have the same checks and keys (test_migrations.py), so SQLite shows what they refuse.
"""

import math
import uuid

import pytest
from schema_rows import HEAD_ROWS
from sqlalchemy import JSON, Numeric, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.orm import configure_mappers
from stored_rows import new_artifact, queue_calibration

import models
from models import (
    Artifact,
    Base,
    Bin,
    BinTable,
    Calibration,
    CalibrationName,
    Evaluation,
    FiniteNumber,
)
from service.storage.tenants import ALL_TENANTS

NOBODY = uuid.uuid4()
NOW = models.database_now()
# Rows that the database takes, but for the columns that refer to others.
OWNERS = {"id", "tenant_id", "calibration_id", "bin_table_id"}
ROWS = {
    table: {
        column: value
        for column, value in HEAD_ROWS[table.__tablename__][0].items()
        if column not in OWNERS
    }
    for table in (BinTable, Bin, Artifact)
}
ROWS[Evaluation] = {"id": uuid.UUID(int=1), "name": "rotated", "labelled": True, "data": {}}
BROKEN = {
    BinTable: [
        *({"k": 0}, {"requested_bins": 0}, {"n_samples": -1}, {"calibration_id": NOBODY}),
        *({"interval_level": 1.0}, {"prior_strength": 0.0}, {"prior_accuracy": 0.0}),
    ],
    Bin: [
        *({"index": -1}, {"hits": 11}, {"hits": -1}, {"probability": 0.4}),
        *({"lower": 1.0, "upper": 1.0}, {"bin_table_id": 10**6}, {"tenant_id": NOBODY}),
        *({"interval_lower": -0.1}, {"interval_upper": 1.1}, {"interval_upper": 0.8}),
    ],
    Evaluation: [{"id": NOBODY}, {"id": NOBODY, "name": "second", "calibration_id": NOBODY}],
    Artifact: [
        *({"position": -1}, {"size": -1}, {"sha256": "0" * 63}),
        *({"calibration_id": NOBODY}, {"evaluation_id": NOBODY}),
    ],
}
OF_A_JOB = [
    *({"status": "running"}, {"status": "running", "lease_owner": "me"}, {"status": "succeeded"}),
    *({"status": "failed", "finished_at": NOW}, {"error": {"title": "x"}}, {"finished_at": NOW}),
    *({"lease_owner": "me", "lease_until": NOW}, {"attempt": -1}),
    *({"progress_done": 2, "progress_total": 1}, {"progress_done": -1}),
]
OF_A_CALIBRATION = [{"version": 0}, {"version": 1}, {"name": "unheard-of"}]


@pytest.fixture
def dialect():
    return "sqlite"


@pytest.fixture
def names(database):
    row = queue_calibration(database)
    return {"tenant_id": row.tenant_id, "calibration_id": row.id}


def store(database, table, **values):
    with database.session(ALL_TENANTS) as session:
        return session.execute(insert(table).values(**(ROWS[table] | values))).inserted_primary_key


@pytest.fixture
def evaluation_id(database, names):
    return store(database, Evaluation, **names)[0]


def test_every_row_and_every_reference_names_its_tenant():
    """No relationship loads by itself, and names of constraints fit into PostgreSQL."""
    for table in Base.metadata.sorted_tables:
        assert table.name == "tenant" or not table.columns["tenant_id"].nullable
        for key in table.foreign_key_constraints:
            assert key.referred_table.name == "tenant" or "tenant_id" in key.column_keys, key.name
        assert all(len(named.name) <= 63 for named in [*table.constraints, *table.indexes])
    configure_mappers()
    relationships = [one for mapper in Base.registry.mappers for one in mapper.relationships]
    assert {one.lazy for one in relationships} == {"raise"}


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize("table", BROKEN)
def test_a_row_that_breaks_a_rule_is_refused(database, names, table):
    owner = names
    if table is Bin:
        (table_id,) = store(database, BinTable, **names)
        owner = {"tenant_id": names["tenant_id"], "bin_table_id": table_id}
    for change in BROKEN[table]:
        with pytest.raises(IntegrityError):
            store(database, table, **(owner | change))


NUMBERS = [
    (table, column.name)
    for table in Base.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, JSON | FiniteNumber)
]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_column_takes_a_number_that_is_not_finite(database, value):
    """Nor a number within JSON; no column of numbers is of another type."""
    assert len(NUMBERS) > 35
    assert not [
        column
        for table in Base.metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, Numeric)
    ]
    for table, name in NUMBERS:
        number = value if isinstance(table.columns[name].type, FiniteNumber) else {"in": [value]}
        row = HEAD_ROWS[table.name][0] | {name: number}
        with (
            pytest.raises(StatementError, match="ValueError"),
            database.session(ALL_TENANTS) as session,
        ):
            session.execute(insert(table).values(row))


@pytest.mark.usefixtures("evaluation_id")
def test_a_change_that_breaks_a_rule_is_refused(database):
    queue_calibration(database)
    jobs = (Calibration, Evaluation)
    changes = [update(job).values(**change) for job in jobs for change in OF_A_JOB]
    changes += [update(Calibration).values(**change) for change in OF_A_CALIBRATION]
    changes += [update(CalibrationName).values(promoted_version=version) for version in (0, 3)]
    for statement in (*changes, delete(models.Tenant)):
        with pytest.raises(IntegrityError), database.session(ALL_TENANTS) as session:
            session.execute(statement)


def test_an_event_has_one_table_per_measure_and_serves_one(database, names):
    store(database, BinTable, **names)
    for change in ({"served": False}, {"measure": "entropy"}):
        with pytest.raises(IntegrityError):
            store(database, BinTable, **names, **change)
    store(database, BinTable, **names, served=False, measure="entropy")


def test_a_file_has_a_role_and_position_once_and_one_reference(database, names, evaluation_id):
    """In a calibration, and in each of its evaluations."""
    for i, owner in enumerate((None, evaluation_id)):
        file = names | {"evaluation_id": owner}
        store(database, Artifact, **file, key=f"{i}")
        store(database, Artifact, **file, key=f"{i}-1", position=1)
        with pytest.raises(IntegrityError):
            store(database, Artifact, **file, key=f"{i}-again")
    other = {"calibration_id": queue_calibration(database).id, "key": "0"}
    for change in (
        {"position": 2, "key": "0"},
        {"position": 2, "key": "0", "evaluation_id": evaluation_id},
        other | {"evaluation_id": evaluation_id},  # of a calibration that is not its own
    ):
        with pytest.raises(IntegrityError):
            store(database, Artifact, **names | change)
    store(database, Artifact, **names | other)


def test_what_belongs_to_a_job_goes_with_it_and_nothing_else(database):
    made = uuid.uuid4()
    row = queue_calibration(database, artifacts=[new_artifact(made)], calibration_id=made)
    names = {"tenant_id": row.tenant_id, "calibration_id": row.id}
    (table_id,) = store(database, BinTable, **names)
    store(database, Bin, tenant_id=row.tenant_id, bin_table_id=table_id)
    (evaluation_id,) = store(database, Evaluation, **names)
    store(database, Artifact, **names, evaluation_id=evaluation_id)
    with database.session(ALL_TENANTS) as session:
        session.execute(delete(Evaluation))
        assert [file.role for file in session.scalars(select(Artifact))] == ["calibration"]
        session.execute(delete(Calibration))
        for table in (BinTable, Bin, Artifact, Evaluation):
            assert session.scalars(select(table)).all() == []
        assert len(session.scalars(select(CalibrationName)).all()) == 1
