"""The sixth migration gives calibrations findings: none, for those that are there already."""

import sqlalchemy as sa
from alembic import command
from schema_rows import fill

from service.storage.database import make_engine
from service.storage.schema import migration_config


def findings_of(url):
    engine = make_engine(url)
    table = sa.table("calibration", sa.column("version"), sa.column("findings", sa.JSON))
    with engine.connect() as connection:
        found = dict(connection.execute(sa.select(table.c.version, table.c.findings)).all())
    engine.dispose()
    return found


def test_calibrations_that_are_there_have_none(database_url):
    fill(database_url)
    before = findings_of(database_url)
    assert all(before.values())
    command.downgrade(migration_config(database_url), "0005")
    command.upgrade(migration_config(database_url), "0006")
    assert findings_of(database_url) == {version: [] for version in before}
