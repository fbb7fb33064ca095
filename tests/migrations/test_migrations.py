import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from howsure_command import FORKS
from sqlalchemy import CheckConstraint, Inspector, create_engine, inspect, select, text

import models
from service.storage.database import make_engine, open_database
from service.storage.schema import is_current, migration_config, upgrade
from service.storage.tenants import ALL_TENANTS

# Oldest first; the first one makes the tables.
REVISIONS = sorted(
    script.revision for script in ScriptDirectory.from_config(migration_config("")).walk_revisions()
)


@contextmanager
def inspected(url: str) -> Iterator[Inspector]:
    engine = make_engine(url)
    try:
        yield inspect(engine)
    finally:
        engine.dispose()


def tables(url: str) -> set[str]:
    with inspected(url) as found:
        return set(found.get_table_names()) - {"alembic_version"}


def form(url: str) -> dict[str, str]:
    """Return columns, keys, indexes and rules of every table, in no order."""
    with inspected(url) as found:
        rules = (
            found.get_columns,
            found.get_foreign_keys,
            found.get_unique_constraints,
            found.get_indexes,
            found.get_check_constraints,
        )
        return {
            table: f"{found.get_pk_constraint(table)} {[in_order(of(table)) for of in rules]}"
            for table in found.get_table_names()
        }


def checks(url: str, table: str) -> dict[str, str]:
    with inspected(url) as found:
        rules = found.get_check_constraints(table)
    return {check["name"]: " ".join(check["sqltext"].split()) for check in rules}


def in_order(rules: list[dict]) -> list[str]:
    return sorted(json.dumps(rule, default=str, sort_keys=True) for rule in rules)


def test_each_step_down_leaves_the_tables_that_its_step_up_found(empty_database_url):
    """SQLite alters a table by making it anew: nothing of it is lost on the way."""
    config, forms = migration_config(empty_database_url), []
    for revision in REVISIONS:
        forms.append(form(empty_database_url))
        command.upgrade(config, revision)
    assert tables(empty_database_url) == set(models.Base.metadata.tables)
    command.check(config)
    newest = form(empty_database_url)
    for before in reversed(forms[1:]):
        command.downgrade(config, "-1")
        assert form(empty_database_url) == before
    command.downgrade(config, "base")
    assert tables(empty_database_url) == set()
    upgrade(empty_database_url)
    assert form(empty_database_url) == newest


def test_check_notices_a_missing_column(empty_database_url):
    upgrade(empty_database_url)
    engine = make_engine(empty_database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE bin DROP COLUMN mean_uncertainty"))
    engine.dispose()
    with pytest.raises(CommandError, match="mean_uncertainty"):
        command.check(migration_config(empty_database_url))


def test_the_migrations_write_the_checks_of_the_models(empty_database_url):
    """Alembic compares tables, columns, keys and indexes; CHECK constraints are left to this."""
    of_models = models.Base.metadata.tables
    upgrade(empty_database_url)
    migrated = {table: checks(empty_database_url, table) for table in of_models}
    command.downgrade(migration_config(empty_database_url), "base")
    with inspected(empty_database_url) as found:
        models.Base.metadata.create_all(found.engine)
    for name, table in of_models.items():
        assert migrated[name] == checks(empty_database_url, name)
        declared = [rule for rule in table.constraints if isinstance(rule, CheckConstraint)]
        assert len(migrated[name]) == len(declared)


def test_a_fresh_database_has_the_default_tenant(database):
    with database.reading(ALL_TENANTS) as session:
        assert session.scalars(select(models.Tenant.name)).all() == [models.DEFAULT_TENANT]


def test_is_current_tells_an_empty_database_from_a_migrated_one(empty_database_url):
    database = open_database(empty_database_url)
    assert not is_current(database)
    upgrade(empty_database_url)
    assert is_current(database)
    database.dispose()


def _upgrade_at_once(url, barrier):
    barrier.wait(30)
    upgrade(url)


def test_processes_that_migrate_at_once_wait_for_one_another(empty_database_url):
    barrier = FORKS.Barrier(3)
    arguments = (empty_database_url, barrier)
    processes = [FORKS.Process(target=_upgrade_at_once, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    database = open_database(empty_database_url)
    assert is_current(database)
    database.dispose()


def test_alembics_command_line_takes_the_url_from_the_settings(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'from_settings.sqlite3'}"
    monkeypatch.setenv("HOWSURE_DATABASE_URL", url)
    config = migration_config("unused")
    del config.attributes["url"]
    command.upgrade(config, "head")
    assert "calibration" in tables(url)


def test_the_sql_of_a_migration_can_be_printed(capsys):
    config = migration_config("postgresql+psycopg://nowhere.invalid/none")
    command.upgrade(config, "head", sql=True)
    printed = capsys.readouterr().out
    assert "CREATE TABLE calibration (" in printed
    assert "INSERT INTO tenant" in printed


def test_a_migration_that_orphans_rows_is_undone(tmp_path):
    url = f"sqlite:///{tmp_path / 'orphans.sqlite3'}"
    upgrade(url)
    engine = create_engine(url)  # foreign keys are off by default
    with engine.begin() as connection:
        orphan = text("INSERT INTO calibration_name VALUES (:tenant, 'x', 1, NULL)")
        connection.execute(orphan, {"tenant": "0" * 32})
    engine.dispose()
    with pytest.raises(RuntimeError, match="without their parents"):
        upgrade(url)
