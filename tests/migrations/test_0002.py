"""The second migration keeps what the first version of the service stored, there and back."""

import json
import uuid

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy import inspect, select

import models
from service.storage.database import make_engine
from service.storage.schema import migration_config

TENANT_ID = uuid.UUID("00000000-0000-4000-8000-000000000001")
OLD_ID, OTHER_ID = uuid.UUID(int=1), uuid.UUID(int=2)
ADDED = {
    "calibration": {
        "refit_of",
        "model_scores",
        "verdicts",
        "baselines",
        "mislabelled",
        "progress_rate",
        "claimed_at",
        "findings",
    },
    "artifact": {"evaluation_id"},
    "bin_table": {"quantile_bins", "analysis", "curves"},
    "score": {"difference", "difference_error", "difference_pairs"},
}
LATER = {"evaluation", "export", "idempotency_key", "api_key", "audit_entry", "tenant_limit"} | {
    "operating_point"
}


def first_version(table: sa.Table) -> sa.TableClause:
    """Return the table as the first migration made it."""
    added = ADDED.get(table.name, set())
    return sa.table(
        table.name, *(sa.column(c.name, c.type) for c in table.columns if c.name not in added)
    )


OLD = {
    name: first_version(table)
    for name, table in models.Base.metadata.tables.items()
    if name not in LATER
}


def calibration(calibration_id, version):
    return {
        "id": calibration_id,
        "tenant_id": TENANT_ID,
        "name": "digits",
        "version": version,
        "status": "queued",
        "attempt": 0,
        "cancel_requested": False,
        "progress_done": 0,
        "progress_total": 0,
        "created_at": models.database_now(),
        "config": {"bins": "auto"},
        "onnx_model": {"sha256": "0" * 64},
        "data": {"samples": 30},
        "versions": {"numpy": "2"},
        "warnings": ["few samples"],
    }


def artifact(role, **changes):
    return {
        "tenant_id": TENANT_ID,
        "calibration_id": OLD_ID,
        "role": role,
        "position": 0,
        "label": "a file",
        "key": f"calibrations/{OLD_ID}/{role}-0",
        "sha256": "0" * 64,
        "size": 2**40,
    } | changes


def bin_table(table_id, measure, **changes):
    return {
        "id": table_id,
        "tenant_id": TENANT_ID,
        "calibration_id": OLD_ID,
        "k": 1,
        "measure": measure,
        "column": measure,
        "served": measure == "margin",
        "requested_bins": 10,
        "lookup": "step",
        "monotone": False,
        "interval_method": "wilson",
        "interval_level": 0.95,
        "interval_simultaneous": False,
        "prior_accuracy": 0.1 + 2**-55,
        "prior_strength": 1.0,
        "prior_degenerate": False,
        "n_samples": 30,
        "candidates": [{"bins": 10}],
    } | changes


def bins(table_id, n):
    return [
        {
            "tenant_id": TENANT_ID,
            "bin_table_id": table_id,
            "index": i,
            "lower": None if i == 0 else float(i),
            "upper": None if i == n - 1 else i + 1.0,
            "count": 10,
            "hits": 9,
            "probability": 0.9,
            "interval_lower": 0.5,
            "interval_upper": 1.0,
            "mean_uncertainty": 0.1 + i,
            "odds_ratio": 1.0,
        }
        for i in range(n)
    ]


def score(kind, name, **changes):
    return {
        "tenant_id": TENANT_ID,
        "calibration_id": OLD_ID,
        "k": 1,
        "subject_kind": kind,
        "subject": "any",
        "phase": "cross_validation",
        "name": name,
        "position": 0,
        "mean": 0.25,
        "std": None,
        "folds": 10,
        "pooled": 0.1,
    } | changes


STORED = {
    "calibration_name": [
        {"tenant_id": TENANT_ID, "name": "digits", "last_version": 2, "promoted_version": 1}
    ],
    "calibration": [calibration(OLD_ID, 1), calibration(OTHER_ID, 2)],
    "artifact": [
        artifact("model"),
        artifact("records"),
        artifact("model", calibration_id=OTHER_ID),
    ],
    "bin_table": [
        bin_table(1, "margin"),
        bin_table(2, "entropy", monotone=True),
        bin_table(3, "neg_log_pmax"),
    ],
    "bin": [*bins(1, 7), *bins(2, 4)],
    "score": [score("measure", "nll"), score("baseline", "nll")],
}


@pytest.fixture
def url(empty_database_url):
    """A database as the first version of the service left it."""
    command.upgrade(migration_config(empty_database_url), "0001")
    run(empty_database_url, *(sa.insert(OLD[name]).values(rows) for name, rows in STORED.items()))
    return empty_database_url


def run(url, *statements):
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            return [connection.execute(statement) for statement in statements]
    finally:
        engine.dispose()


def rows(url, table, *columns):
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            query = select(*(table.c[name] for name in columns)) if columns else select(table)
            return sorted((tuple(row) for row in connection.execute(query)), key=repr)
    finally:
        engine.dispose()


def everything(url):
    return {name: rows(url, table) for name, table in OLD.items()}


def schema(url):
    """Return columns, keys, indexes and rules of every table, in no order."""
    engine = make_engine(url)
    try:
        found = inspect(engine)
        return {
            table: {
                "columns": {
                    c["name"]: (str(c["type"]), c["nullable"], c["default"])
                    for c in found.get_columns(table)
                },
                "key": found.get_pk_constraint(table),
                "foreign": by_name(found.get_foreign_keys(table)),
                "unique": by_name(found.get_unique_constraints(table)),
                "indexes": by_name(found.get_indexes(table)),
                "checks": by_name(found.get_check_constraints(table)),
            }
            for table in found.get_table_names()
        }
    finally:
        engine.dispose()


def by_name(found):
    return {one["name"]: json.dumps(one, default=str, sort_keys=True) for one in found}


def upgrade(url):
    command.upgrade(migration_config(url), "head")


def downgrade(url):
    command.downgrade(migration_config(url), "0001")


def test_what_was_stored_is_there_after_the_upgrade(url):
    before = everything(url)
    assert {name: len(found) for name, found in before.items()} == {
        **{name: len(found) for name, found in STORED.items()},
        "tenant": 1,
    }
    upgrade(url)
    assert everything(url) == before
    command.check(migration_config(url))


def test_tables_count_the_bins_they_had_before_pooling_as_far_as_that_is_known(url):
    """Seven bins that were not pooled; four that were, of ten at most; a table without bins."""
    upgrade(url)
    table = models.BinTable.__table__
    found = rows(url, table, "id", "quantile_bins", "analysis", "curves")
    assert found == [(1, 7, {}, {}), (2, 10, {}, {}), (3, 10, {}, {})]


def test_the_other_new_columns_are_null(url):
    upgrade(url)
    for name in ("calibration", "artifact", "score"):
        table = models.Base.metadata.tables[name]
        found = rows(url, table, *sorted(ADDED[name] - {"findings"}))
        assert {value for row in found for value in row} == {None}


def test_the_way_back_leaves_the_first_schema_and_what_was_stored(url):
    before, data = schema(url), everything(url)
    upgrade(url)
    assert schema(url) != before
    downgrade(url)
    assert schema(url) == before
    assert everything(url) == data
    upgrade(url)
    assert everything(url) == data
    command.check(migration_config(url))


def test_the_way_back_drops_what_the_first_version_does_not_know(url):
    data = everything(url)
    upgrade(url)
    evaluation_id, key = uuid.uuid4(), f"calibrations/{OLD_ID}/evaluations/set"
    further = {"id": evaluation_id, "tenant_id": TENANT_ID, "calibration_id": OLD_ID}
    file = artifact("evaluation", key=key, evaluation_id=evaluation_id)
    second = file | {"key": f"{key}-2", "position": 1}
    difference = {"difference": 0.5, "difference_error": None, "difference_pairs": 1}
    run(
        url,
        sa.insert(models.Evaluation).values(**further, name="rotated", labelled=False, data={}),
        sa.insert(models.Artifact).values([file, second]),
        sa.insert(models.Score).values(score("oracle", "nll", subject="loss")),
        sa.update(models.Score).where(models.Score.subject_kind == "baseline").values(difference),
        sa.update(models.Calibration)
        .where(models.Calibration.id == OTHER_ID)
        .values(refit_of=OLD_ID, verdicts={"1": {}}),
        sa.update(models.BinTable).values(analysis={"guarantee": {}}, curves={"roc": [0.5]}),
    )
    downgrade(url)
    assert everything(url) == data
    assert "evaluation" not in schema(url)


def test_rules_hold_after_the_upgrade_and_after_the_way_back(url):
    """SQLite alters a table by making it anew: nothing of it is lost on the way."""
    same_file = sa.insert(OLD["artifact"]).values(artifact("model", key="calibrations/x/y"))
    stranger = sa.insert(OLD["score"]).values(score("measure", "ece", calibration_id=uuid.uuid4()))
    served_twice = sa.insert(OLD["bin_table"]).values(bin_table(9, "any", served=True))
    upgrade(url)
    new_columns = sa.insert(models.BinTable).values(
        **bin_table(9, "any", served=True), quantile_bins=1
    )
    for broken in (same_file, stranger, new_columns):
        with pytest.raises(sa.exc.IntegrityError):
            run(url, broken)
    downgrade(url)
    for broken in (same_file, stranger, served_twice):
        with pytest.raises(sa.exc.IntegrityError):
            run(url, broken)
    run(url, sa.delete(OLD["calibration"]))
    for name in ("artifact", "bin_table", "bin", "score"):
        assert rows(url, OLD[name]) == []
