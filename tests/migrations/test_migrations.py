"""Migrations: the tables are those that the models declare, and a step keeps tables and rows."""

import json

import pytest
import sqlalchemy as sa
from alembic import command
from later_revision import later_revision
from schema_rows import HEAD_ROWS, connected, fill, go_to, held, in_order, revision

import models
from service.errors import Conflict
from service.storage.database import open_database
from service.storage.schema import is_current, migration_config, upgrade
from service.storage.tenants import ALL_TENANTS

SQLITE = pytest.mark.parametrize("dialect", ["sqlite"])
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


def test_what_is_made_can_be_filled_and_dropped_and_made_again(empty_database_url):
    url = empty_database_url
    upgrade(url)
    made = form_of(url)
    fill(url)
    in_number = {name: len(of) + (name == "tenant") for name, of in HEAD_ROWS.items()}
    assert {name: len(of) for name, of in rows_of(url).items()} == in_number
    command.check(migration_config(url))
    command.downgrade(migration_config(url), "base")
    assert set(form_of(url)) <= {"alembic_version"}
    upgrade(url)
    assert form_of(url) == made


def test_a_step_up_and_down_keeps_the_tables_and_every_row(database_url, tmp_path):
    """SQLite alters a table by making it anew: nothing of it is lost on the way."""
    url, before = database_url, revision(database_url)
    fill(url)
    form, rows = form_of(url), rows_of(url)
    with later_revision(tmp_path / "migrations") as later:
        upgrade(url)
        assert revision(url) == later
        with_notes = rows_of(url)
        assert {row.pop("note") == row["k"] for row in with_notes["bin_table"]} == {True}
        with_notes["bin_table"] = in_order(with_notes["bin_table"])
        assert with_notes == rows
        go_to(url, before)
    assert (form_of(url), rows_of(url)) == (form, rows)


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
    command.upgrade(config, "head")
    assert "calibration" in form_of(empty_database_url)


def test_the_sql_of_a_migration_can_be_printed(capsys):
    config = migration_config("postgresql+psycopg://nowhere.invalid/none")
    command.upgrade(config, "head", sql=True)
    printed = capsys.readouterr().out
    assert "CREATE TABLE calibration (" in printed
    assert "INSERT INTO tenant" in printed


@SQLITE
def test_a_migration_that_orphans_rows_is_undone(database_url, tmp_path):
    engine = sa.create_engine(database_url)  # foreign keys are off by default
    with engine.begin() as connection:
        orphan = sa.text("INSERT INTO calibration_name VALUES (:tenant, 'x', 1, NULL)")
        connection.execute(orphan, {"tenant": "0" * 32})
    engine.dispose()
    before = revision(database_url)
    with (
        later_revision(tmp_path / "migrations"),
        pytest.raises(RuntimeError, match="without their parents"),
    ):
        upgrade(database_url)
    assert revision(database_url) == before


@SQLITE
def test_a_schema_of_a_newer_program_is_refused(database_url, tmp_path):
    with later_revision(tmp_path / "migrations"):
        upgrade(database_url)
    with pytest.raises(Conflict, match="A newer version"):
        upgrade(database_url)
