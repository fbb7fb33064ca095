import uuid

import pytest
from sqlalchemy import delete, func, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import configure_mappers
from storage_rows import add_tenant, new_artifact, queue_calibration

import models
from models import Artifact, Base, Bin, BinTable, Calibration, CalibrationName, Evaluation, Score

BIN_TABLE = {
    "k": 1,
    "measure": "margin",
    "column": "margin",
    "served": True,
    "requested_bins": 1,
    "quantile_bins": 1,
    "lookup": "step",
    "monotone": False,
    "interval_method": "wilson",
    "interval_level": 0.95,
    "interval_simultaneous": False,
    "prior_accuracy": 0.9,
    "prior_strength": 1.0,
    "prior_degenerate": False,
    "n_samples": 10,
    "candidates": [],
}
BIN = {
    "index": 0,
    "lower": None,
    "upper": None,
    "count": 10,
    "hits": 9,
    "probability": 0.9,
    "interval_lower": 0.5,
    "interval_upper": 1.0,
    "mean_uncertainty": 0.1,
    "odds_ratio": 1.0,
}
SCORE = {
    "k": 1,
    "subject_kind": "measure",
    "subject": "margin",
    "phase": "cross_validation",
    "name": "nll",
    "position": 0,
    "mean": 0.1,
    "std": 0.1,
    "folds": 10,
    "pooled": 0.1,
}
EVALUATION = {
    "name": "rotated",
    "labelled": True,
    "data": {},
}
OTHER_SET = {"id": uuid.UUID(int=2), "name": "shifted"}
ARTIFACT = {
    "role": "model",
    "position": 0,
    "label": "model.onnx",
    "key": "calibrations/x/model-0",
    "sha256": "0" * 64,
    "size": 1,
}


@pytest.fixture
def names(database):
    row = queue_calibration(database)
    return {"tenant_id": row.tenant_id, "calibration_id": row.id}


def store(database, table, **values):
    with database.session() as session:
        return session.execute(insert(table).values(**values)).inserted_primary_key


def count(database, table):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


def test_every_table_but_the_tenants_names_its_tenant():
    for name, table in Base.metadata.tables.items():
        if name != "tenant":
            assert not table.columns["tenant_id"].nullable


def test_every_reference_carries_the_tenant():
    for table in Base.metadata.tables.values():
        for key in table.foreign_key_constraints:
            if key.referred_table.name != "tenant":
                assert "tenant_id" in key.column_keys, f"{table.name} -> {key.referred_table.name}"


def test_no_relationship_loads_by_itself():
    configure_mappers()
    for mapper in Base.registry.mappers:
        for relationship in mapper.relationships:
            assert relationship.lazy == "raise", relationship


@pytest.fixture
def evaluation_id(database, names):
    return store(database, Evaluation, id=uuid.uuid4(), **names, **EVALUATION)[0]


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize("job", [Calibration, Evaluation])
@pytest.mark.parametrize(
    "change",
    [
        {"status": "running"},
        {"status": "running", "lease_owner": "me"},
        {"status": "succeeded"},
        {"status": "failed", "finished_at": models.database_now()},
        {"error": {"title": "x"}},
        {"lease_owner": "me", "lease_until": models.database_now()},
        {"finished_at": models.database_now()},
        {"attempt": -1},
        {"progress_done": 2, "progress_total": 1},
        {"progress_done": -1},
    ],
)
def test_a_job_in_two_minds_is_refused(database, job, change):
    with pytest.raises(IntegrityError), database.session() as session:
        session.execute(update(job).values(**change))


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE calibration SET status = 'done'", "UPDATE evaluation SET status = 'done'"],
)
def test_a_status_of_no_kind_is_refused_by_the_database(database, statement):
    with pytest.raises(IntegrityError), database.session() as session:
        session.connection().exec_driver_sql(statement)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("change", [{"version": 0}, {"name": "unheard-of"}])
def test_a_calibration_that_breaks_a_rule_is_refused(database, change):
    with pytest.raises(IntegrityError), database.session() as session:
        session.execute(update(Calibration).values(**change))


@pytest.mark.usefixtures("evaluation_id")
@pytest.mark.parametrize("change", [{}, {"name": "second", "calibration_id": uuid.uuid4()}])
def test_an_evaluation_that_breaks_a_rule_is_refused(database, names, change):
    with pytest.raises(IntegrityError):
        store(database, Evaluation, **(names | {"id": uuid.uuid4()} | EVALUATION | change))


def test_both_kinds_of_jobs_have_the_columns_of_a_job():
    """Written once: a column of one that is a column of the other is the same."""
    shared = set(Calibration.__table__.columns.keys()) & set(Evaluation.__table__.columns.keys())
    assert shared - {"name", "data"} == set(models.Job.__annotations__)
    for table in (Calibration.__table__, Evaluation.__table__):
        indexes = [[column.name for column in index.columns] for index in table.indexes]
        assert ["status", "tenant_id", "created_at", "id"] in indexes
        assert ["tenant_id", "claimed_at"] in indexes


@pytest.mark.usefixtures("names")
def test_a_version_is_given_once(database):
    second = queue_calibration(database)
    with pytest.raises(IntegrityError), database.session() as session:
        session.execute(update(Calibration).where(Calibration.id == second.id).values(version=1))


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("version", [0, 2])
def test_a_version_that_never_was_cannot_be_promoted(database, version):
    with pytest.raises(IntegrityError), database.session() as session:
        session.execute(update(CalibrationName).values(promoted_version=version))


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {"requested_bins": 0},
        {"quantile_bins": 0},
        {"interval_level": 0.0},
        {"interval_level": 1.0},
        {"prior_accuracy": 0.0},
        {"prior_accuracy": 1.0},
        {"prior_strength": 0.0},
        {"n_samples": -1},
        {"calibration_id": uuid.uuid4()},
    ],
)
def test_a_bin_table_that_breaks_a_rule_is_refused(database, names, change):
    with pytest.raises(IntegrityError):
        store(database, BinTable, **(names | BIN_TABLE | change))


def test_one_table_per_event_and_measure(database, names):
    store(database, BinTable, **names, **(BIN_TABLE | {"served": False}))
    with pytest.raises(IntegrityError):
        store(database, BinTable, **names, **(BIN_TABLE | {"served": False}))


@pytest.mark.parametrize(
    "change",
    [
        {"index": -1},
        {"hits": 11},
        {"hits": -1},
        {"lower": 1.0, "upper": 1.0},
        {"lower": 2.0, "upper": 1.0},
        {"interval_lower": -0.1},
        {"interval_upper": 1.1},
        {"probability": 0.4},
        {"interval_upper": 0.8},
        {"bin_table_id": 1_000_000},
    ],
)
def test_a_bin_that_breaks_a_rule_is_refused(database, names, change):
    (table_id,) = store(database, BinTable, **names, **BIN_TABLE)
    keys = {"tenant_id": names["tenant_id"], "bin_table_id": table_id}
    store(database, Bin, **keys, **BIN)
    with pytest.raises(IntegrityError):
        store(database, Bin, **(keys | BIN | {"index": 1} | change))


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {"folds": -1},
        {"folds": None},
        {"phase": "evaluation"},
        {"value": 0.5},
        {"difference": 0.5, "difference_pairs": 10},
        {"subject_kind": "oracle", "difference": 0.5, "difference_pairs": 10},
        {"subject_kind": "baseline", "difference": 0.5},
        {"subject_kind": "baseline", "difference_pairs": 10},
        {"subject_kind": "baseline", "difference_error": 0.5},
        {"calibration_id": uuid.uuid4()},
    ],
)
def test_a_score_that_breaks_a_rule_is_refused(database, names, change):
    with pytest.raises(IntegrityError):
        store(database, Score, **(names | SCORE | change))


@pytest.mark.parametrize("error", [None, 0.0, 0.25])
def test_a_baseline_may_differ_with_and_without_a_standard_error(database, names, error):
    difference = {"difference": -0.5, "difference_error": error, "difference_pairs": 1}
    store(database, Score, **(names | SCORE | {"subject_kind": "baseline"} | difference))


@pytest.mark.parametrize(
    "change",
    [
        {"position": -1},
        {"size": -1},
        {"sha256": "0" * 63},
        {"calibration_id": uuid.uuid4()},
        {"evaluation_id": uuid.uuid4()},
    ],
)
def test_an_artifact_that_breaks_a_rule_is_refused(database, names, change):
    with pytest.raises(IntegrityError):
        store(database, Artifact, **(names | ARTIFACT | change))


def test_a_calibration_and_each_evaluation_have_a_file_of_a_role_and_position_once(
    database, names, evaluation_id
):
    other_id = store(database, Evaluation, **(names | EVALUATION | OTHER_SET))[0]
    for i, owner in enumerate((None, evaluation_id, other_id)):
        file = names | ARTIFACT | {"evaluation_id": owner}
        store(database, Artifact, **(file | {"key": f"{i}"}))
        store(database, Artifact, **(file | {"key": f"{i}-1", "position": 1}))
        with pytest.raises(IntegrityError):
            store(database, Artifact, **(file | {"key": f"{i}-again"}))


def test_a_calibration_and_its_evaluations_refer_to_a_file_once(database, names, evaluation_id):
    store(database, Artifact, **names, **ARTIFACT)
    for change in ({"position": 1}, {"evaluation_id": evaluation_id}):
        with pytest.raises(IntegrityError):
            store(database, Artifact, **(names | ARTIFACT | change))
    other = queue_calibration(database)
    store(database, Artifact, **(names | {"calibration_id": other.id}), **ARTIFACT)


def test_a_file_of_an_evaluation_is_one_of_its_own_calibration(database, names, evaluation_id):
    other = queue_calibration(database)
    stray = names | ARTIFACT | {"calibration_id": other.id, "evaluation_id": evaluation_id}
    with pytest.raises(IntegrityError):
        store(database, Artifact, **stray)


@pytest.mark.parametrize(
    ("table", "columns"),
    [(BinTable, BIN_TABLE), (Score, SCORE), (Artifact, ARTIFACT), (Evaluation, EVALUATION)],
)
def test_a_child_cannot_point_to_the_parent_of_another_tenant(database, names, table, columns):
    other = add_tenant(database, "other")
    made = [{"id": uuid.uuid4()} if table is Evaluation else {} for _ in range(2)]
    store(database, table, **names, **columns, **made[0])
    with pytest.raises(IntegrityError, match=r"(?i)foreign key"):
        store(database, table, **(names | {"tenant_id": other}), **columns, **made[1])


@pytest.mark.usefixtures("names")
def test_a_tenant_that_owns_something_cannot_go(database):
    with pytest.raises(IntegrityError), database.session() as session:
        session.execute(delete(models.Tenant))


def test_what_belongs_to_a_calibration_goes_with_it(database):
    made = uuid.uuid4()
    row = queue_calibration(database, artifacts=[new_artifact(made)], calibration_id=made)
    names = {"tenant_id": row.tenant_id, "calibration_id": row.id}
    (table_id,) = store(database, BinTable, **names, **BIN_TABLE)
    store(database, Bin, tenant_id=row.tenant_id, bin_table_id=table_id, **BIN)
    store(database, Score, **names, **SCORE)
    (evaluation_id,) = store(database, Evaluation, id=uuid.uuid4(), **names, **EVALUATION)
    store(database, Artifact, **names, **ARTIFACT, evaluation_id=evaluation_id)
    with database.session() as session:
        session.execute(delete(Calibration))
    for table in (BinTable, Bin, Score, Artifact, Evaluation):
        assert count(database, table) == 0
    assert count(database, CalibrationName) == 1


def test_what_belongs_to_an_evaluation_goes_with_it_and_nothing_else(database):
    made = uuid.uuid4()
    row = queue_calibration(database, artifacts=[new_artifact(made)], calibration_id=made)
    names = {"tenant_id": row.tenant_id, "calibration_id": row.id}
    (evaluation_id,) = store(database, Evaluation, id=uuid.uuid4(), **names, **EVALUATION)
    store(database, Artifact, **names, **ARTIFACT, evaluation_id=evaluation_id)
    with database.session() as session:
        session.execute(delete(Evaluation))
    with database.reading() as session:
        left = session.scalars(select(Artifact)).all()
    assert [(file.evaluation_id, file.role) for file in left] == [(None, "calibration")]
    assert count(database, Calibration) == 1


def test_names_of_constraints_fit_into_postgresql():
    for table in Base.metadata.tables.values():
        for named in [*table.constraints, *table.indexes]:
            assert named.name is not None
            assert len(named.name) <= 63


def test_floats_are_kept_in_double_precision(database, names):
    exact = 0.1 + 2**-55
    store(database, Score, **(names | SCORE | {"mean": exact, "std": 5e-324, "pooled": -0.0}))
    with database.reading() as session:
        row = session.scalars(select(Score)).one()
    assert (row.mean, row.std, row.pooled) == (exact, 5e-324, 0.0)


def test_the_tables_of_the_models_are_those_of_the_database(database):
    assert set(inspect(database.engine).get_table_names()) - {"alembic_version"} == set(
        Base.metadata.tables
    )
