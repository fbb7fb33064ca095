"""The rules that the database itself keeps.

Both databases have the same checks and keys (test_migrations.py), so SQLite shows what they refuse.
"""

import uuid

import pytest
from schema_rows import HEAD_ROWS
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import configure_mappers
from stored_rows import new_artifact, queue_calibration

import models
from models import Artifact, Base, Bin, BinTable, Calibration, CalibrationName, Evaluation, Score
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
    for table in (BinTable, Bin, Score, Artifact)
}
ROWS[Evaluation] = {"id": uuid.UUID(int=1), "name": "rotated", "labelled": True, "data": {}}
BASELINE = {"subject_kind": "baseline"}
BROKEN = {
    BinTable: [
        *({"k": 0}, {"requested_bins": 0}, {"quantile_bins": 0}, {"n_samples": -1}),
        *({"interval_level": 0.0}, {"interval_level": 1.0}, {"prior_strength": 0.0}),
        *({"prior_accuracy": 0.0}, {"prior_accuracy": 1.0}, {"calibration_id": NOBODY}),
    ],
    Bin: [
        *({"index": -1}, {"hits": 11}, {"hits": -1}, {"probability": 0.4}),
        *({"lower": 1.0, "upper": 1.0}, {"lower": 2.0, "upper": 1.0}, {"bin_table_id": 10**6}),
        *({"interval_lower": -0.1}, {"interval_upper": 1.1}, {"interval_upper": 0.8}),
        {"tenant_id": NOBODY},
    ],
    Score: [
        *({"k": 0}, {"folds": -1}, {"folds": None}, {"phase": "evaluation"}, {"value": 0.5}),
        {"difference": 0.5, "difference_pairs": 10},
        {"subject_kind": "oracle", "difference": 0.5, "difference_pairs": 10},
        *(BASELINE | {name: 1} for name in ("difference", "difference_pairs", "difference_error")),
        {"calibration_id": NOBODY},
    ],
    Evaluation: [{"name": "rotated"}, {"name": "second", "calibration_id": NOBODY}],
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


def count(database, table):
    with database.reading(ALL_TENANTS) as session:
        return session.scalar(select(func.count()).select_from(table))


def test_every_row_and_every_reference_names_its_tenant():
    for name, table in Base.metadata.tables.items():
        assert name == "tenant" or not table.columns["tenant_id"].nullable
        for key in table.foreign_key_constraints:
            if key.referred_table.name != "tenant":
                assert "tenant_id" in key.column_keys, f"{table.name} -> {key.referred_table.name}"


def test_no_relationship_loads_by_itself_and_names_of_constraints_fit_into_postgresql():
    configure_mappers()
    for mapper in Base.registry.mappers:
        for relationship in mapper.relationships:
            assert relationship.lazy == "raise", relationship
    for table in Base.metadata.tables.values():
        for named in [*table.constraints, *table.indexes]:
            assert named.name is not None
            assert len(named.name) <= 63


def test_both_kinds_of_jobs_have_the_columns_of_a_job():
    shared = set(Calibration.__table__.columns.keys()) & set(Evaluation.__table__.columns.keys())
    assert shared - {"name", "data"} == set(models.Job.__annotations__)
    for table in (Calibration.__table__, Evaluation.__table__):
        indexes = [[column.name for column in index.columns] for index in table.indexes]
        assert ["status", "tenant_id", "created_at", "id"] in indexes
        assert ["tenant_id", "claimed_at"] in indexes


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize("table", BROKEN)
def test_a_row_that_breaks_a_rule_is_refused(database, names, table):
    owner = names
    if table is Bin:
        (table_id,) = store(database, BinTable, **names)
        owner = {"tenant_id": names["tenant_id"], "bin_table_id": table_id}
    for change in BROKEN[table]:
        if table is Evaluation:
            owner = names | {"id": uuid.uuid4()}
        with pytest.raises(IntegrityError):
            store(database, table, **(owner | change))


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize("job", [Calibration, Evaluation])
def test_a_job_in_two_minds_is_refused(database, job):
    for change in OF_A_JOB:
        with pytest.raises(IntegrityError), database.session(ALL_TENANTS) as session:
            session.execute(update(job).values(**change))


FORBIDDEN = [
    "UPDATE calibration SET status = 'done'",
    "UPDATE evaluation SET status = 'done'",
    "UPDATE calibration SET version = 0",
    "UPDATE calibration SET version = 1 WHERE version = 2",
    "UPDATE calibration SET name = 'unheard-of'",
    "UPDATE calibration_name SET promoted_version = 0",
    "UPDATE calibration_name SET promoted_version = 3",
    "DELETE FROM tenant",
]


@pytest.mark.usefixtures("evaluation_id")
def test_a_change_that_breaks_a_rule_is_refused(database):
    queue_calibration(database)
    for statement in FORBIDDEN:
        with pytest.raises(IntegrityError), database.session(ALL_TENANTS) as session:
            session.execute(text(statement))


def test_an_event_has_one_table_per_measure_and_serves_one(database, names):
    store(database, BinTable, **names)
    for change in ({"served": False}, {"measure": "entropy"}):
        with pytest.raises(IntegrityError):
            store(database, BinTable, **names, **change)
    store(database, BinTable, **names, served=False, measure="entropy")


def test_a_baseline_may_differ_with_and_without_a_standard_error(database, names):
    for name, error in (("nll", None), ("brier", 0.0), ("ece", 0.25)):
        difference = {"difference": -0.5, "difference_error": error, "difference_pairs": 1}
        store(database, Score, **names, **BASELINE, **difference, name=name)


def test_a_calibration_and_each_evaluation_have_a_file_of_a_role_and_position_once(
    database, names, evaluation_id
):
    other_id = store(database, Evaluation, **names, id=uuid.UUID(int=2), name="shifted")[0]
    for i, owner in enumerate((None, evaluation_id, other_id)):
        file = names | {"evaluation_id": owner}
        store(database, Artifact, **file, key=f"{i}")
        store(database, Artifact, **file, key=f"{i}-1", position=1)
        with pytest.raises(IntegrityError):
            store(database, Artifact, **file, key=f"{i}-again")


def test_a_calibration_and_its_evaluations_refer_to_a_file_once(database, names, evaluation_id):
    store(database, Artifact, **names)
    other = names | {"calibration_id": queue_calibration(database).id}
    for change in (
        names | {"position": 1},
        names | {"evaluation_id": evaluation_id},
        other | {"evaluation_id": evaluation_id},  # of a calibration that is not its own
    ):
        with pytest.raises(IntegrityError):
            store(database, Artifact, **change)
    store(database, Artifact, **other)


def test_what_belongs_to_a_job_goes_with_it_and_nothing_else(database):
    made = uuid.uuid4()
    row = queue_calibration(database, artifacts=[new_artifact(made)], calibration_id=made)
    names = {"tenant_id": row.tenant_id, "calibration_id": row.id}
    (table_id,) = store(database, BinTable, **names)
    store(database, Bin, tenant_id=row.tenant_id, bin_table_id=table_id)
    store(database, Score, **names)
    (evaluation_id,) = store(database, Evaluation, **names)
    store(database, Artifact, **names, evaluation_id=evaluation_id)
    with database.session(ALL_TENANTS) as session:
        session.execute(delete(Evaluation))
        assert [file.role for file in session.scalars(select(Artifact))] == ["calibration"]
        session.execute(delete(Calibration))
    for table in (BinTable, Bin, Score, Artifact, Evaluation):
        assert count(database, table) == 0
    assert count(database, CalibrationName) == 1
