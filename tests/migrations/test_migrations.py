"""Migrations: each step keeps tables and rows, and the last one writes what the models declare."""

import json
import math
from itertools import pairwise
from types import MappingProxyType

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from schema_rows import HEAD_ROWS, connected, fill, go_to, held, in_order, revision

import models
from service.storage.database import open_database
from service.storage.schema import is_current, migration_config, upgrade
from service.storage.tenants import ALL_TENANTS

# Oldest first; the first one makes the tables.
REVISIONS = sorted(
    script.revision for script in ScriptDirectory.from_config(migration_config("")).walk_revisions()
)
SQLITE = pytest.mark.parametrize("dialect", ["sqlite"])
# What the schema before a revision has no room for.
ROWS_WITHOUT_ROOM = {
    "0002": lambda table, row: (
        (table == "artifact" and row["evaluation_id"] is not None)
        or (table == "score" and row["subject_kind"] == "oracle")
    ),
    "0003": lambda table, row: table == "artifact" and row["role"] == "export",
    "0004": lambda table, row: table == "artifact" and row["role"] == "samples",
    "0012": lambda table, row: (
        (table == "artifact" and row["role"] == "learned")
        or (table == "bin_table" and row["measure"] == "learned")
        or (table == "bin" and row["bin_table_id"] == 11)
    ),
}
# Values that the schema before a revision has others for.
VALUES_BEFORE = {
    "0012": {"bin_table": {"lookup": {"smooth": "step"}}},
    "0015": {"bin": {"odds_ratio": {None: math.inf}}},
}

WEIGHED = ("calibration", "evaluation", "operating_point")


def bytes_of_row(row):
    """Return the bytes of the documents in a row, and of a reason."""
    names = {
        column.name
        for table in WEIGHED
        for column in models.Base.metadata.tables[table].columns
        if isinstance(column.type, sa.JSON) or column.name == "reason"
    }
    documents = [row[name] for name in names & row.keys() if row[name] is not None]
    return sum(len(one if isinstance(one, str) else json.dumps(one)) for one in documents)


# What a revision fills in for rows that were there: any other column begins as a null. How many
# bins a table had before some were pooled is known if none were; else they were as many as asked
# for at most.
FILLED_IN = {
    "0002": {
        "bin_table": {
            "quantile_bins": lambda row: {3: 3}.get(row["id"], row["requested_bins"]),
            "analysis": lambda _: {},
            "curves": lambda _: {},
        }
    },
    "0005": {
        "calibration": {"claimed_at": lambda row: row["started_at"]},
        "evaluation": {"claimed_at": lambda row: row["started_at"]},
    },
    "0006": {"calibration": {"findings": lambda _: []}},
    "0016": {table: {"row_bytes": bytes_of_row} for table in WEIGHED},
}


RULES = ("columns", "foreign_keys", "unique_constraints", "indexes", "check_constraints")


def form_of(url):
    """Return columns, keys, indexes and rules of every table, in no order."""
    with connected(url) as connection:
        inspector, forms = sa.inspect(connection), {}
        for rule in (*RULES, "pk_constraint"):
            for (_, table), found in getattr(inspector, f"get_multi_{rule}")().items():
                of_table = found if isinstance(found, list) else [found]
                texts = sorted(json.dumps(one, default=str) for one in of_table)
                forms.setdefault(table, {})[rule] = texts
        return forms


def checks_of(url):
    """Return the CHECK constraints of every table of the models, by name."""
    with connected(url) as connection:
        rules = sa.inspect(connection).get_multi_check_constraints()
    return {
        table: {check["name"]: " ".join(check["sqltext"].split()) for check in checks}
        for (_, table), checks in rules.items()
        if table in models.Base.metadata.tables
    }


def rows_of(url):
    """Return the rows of the tables that have any."""
    return {name: of for name, of in held(url).items() if of and name != "alembic_version"}


def projected(rows, onto, is_lost=lambda *_: False, changed=MappingProxyType({})):
    """Return what of the rows there are tables and columns for in another state of the schema."""

    tables = {}
    for name in rows.keys() & onto.keys():
        kept = [row for row in rows[name] if not is_lost(name, row)]
        tables[name] = [
            {key: row[key] for key in row.keys() & onto[name][0].keys()} for row in kept
        ]
        for column, values in changed.get(name, {}).items():
            for row in tables[name]:
                row[column] = values.get(row[column], row[column])
        tables[name] = in_order(tables[name])
    return tables


def assert_new_columns_are_filled_in(before, after, filled_in):
    for table, rows in before.items():
        for column in set(after[table][0]) - set(rows[0]):
            fill_in = filled_in.get(table, {}).get(column, lambda _: None)
            for row in after[table]:
                value = row[column]
                value = json.loads(value) if value in ("{}", "[]") else value
                assert value == fill_in(row), (table, column)


def serve_learned(url, *, served):
    with connected(url) as connection:
        connection.execute(sa.update(models.BinTable).filter_by(id=12).values(served=served))


def test_each_step_down_and_up_keeps_the_tables_and_every_row_with_room(empty_database_url):
    """SQLite alters a table by making it anew: nothing of it is lost on the way."""
    url, forms, steps = empty_database_url, {}, list(pairwise(REVISIONS))
    config = migration_config(url)
    command.upgrade(config, REVISIONS[0])
    made_first = form_of(url)
    upgrade(url)
    forms[REVISIONS[-1]] = form_of(url)
    fill(url)
    rows = rows_of(url)
    in_number = {name: len(of) + (name == "tenant") for name, of in HEAD_ROWS.items()}
    assert {name: len(of) for name, of in rows.items()} == in_number

    serve_learned(url, served=True)
    with pytest.raises(CommandError, match="digits@1"):  # no older version could serve it
        go_to(url, "0010")
    serve_learned(url, served=False)
    assert (revision(url), rows_of(url)) == (REVISIONS[-1], rows)

    for older, newer in reversed(steps):
        before = rows
        command.downgrade(config, older)
        forms[older], rows = form_of(url), rows_of(url)
        is_lost = ROWS_WITHOUT_ROOM.get(newer, lambda *_: False)
        assert rows == projected(before, rows, is_lost, VALUES_BEFORE.get(newer, {})), newer
    assert forms[REVISIONS[0]] == made_first
    for _, newer in steps:
        before = rows
        command.upgrade(config, newer)
        assert form_of(url) == forms[newer], newer
        rows = rows_of(url)
        assert projected(rows, before, changed=VALUES_BEFORE.get(newer, {})) == before, newer
        assert_new_columns_are_filled_in(before, rows, FILLED_IN.get(newer, {}))

    command.check(config)
    command.downgrade(config, "base")
    assert set(form_of(url)) <= {"alembic_version"}


def test_a_new_database_is_as_the_models_declare(empty_database_url):
    """Alembic compares tables, columns, keys and indexes; CHECK constraints are left to this."""
    with connected(empty_database_url) as connection:
        models.Base.metadata.create_all(connection)
    declared = checks_of(empty_database_url)
    with connected(empty_database_url) as connection:
        models.Base.metadata.drop_all(connection)
    database = open_database(empty_database_url)
    assert not is_current(database)
    upgrade(empty_database_url)
    assert is_current(database)
    assert checks_of(empty_database_url) == declared
    for name, table in models.Base.metadata.tables.items():
        rules = [rule for rule in table.constraints if isinstance(rule, sa.CheckConstraint)]
        assert len(declared[name]) == len(rules)
    with database.reading(ALL_TENANTS) as session:
        assert session.scalars(sa.select(models.Tenant.name)).all() == [models.DEFAULT_TENANT]
    database.dispose()


@SQLITE
def test_alembics_command_line_takes_the_url_from_the_settings(empty_database_url, monkeypatch):
    monkeypatch.setenv("HOWSURE_DATABASE_URL", empty_database_url)
    config = migration_config("unused")
    del config.attributes["url"]
    command.upgrade(config, REVISIONS[0])
    assert "calibration" in form_of(empty_database_url)


def test_the_sql_of_a_migration_can_be_printed(capsys):
    config = migration_config("postgresql+psycopg://nowhere.invalid/none")
    command.upgrade(config, "head", sql=True)
    printed = capsys.readouterr().out
    assert "CREATE TABLE calibration (" in printed
    assert "INSERT INTO tenant" in printed


@SQLITE
def test_a_migration_that_orphans_rows_is_undone(database_url):
    go_to(database_url, REVISIONS[-2])
    engine = sa.create_engine(database_url)  # foreign keys are off by default
    with engine.begin() as connection:
        orphan = sa.text("INSERT INTO calibration_name VALUES (:tenant, 'x', 1, NULL)")
        connection.execute(orphan, {"tenant": "0" * 32})
    engine.dispose()
    with pytest.raises(RuntimeError, match="without their parents"):
        upgrade(database_url)
