"""A backup that an older version of the service made is restored and brought up to date."""

import sqlalchemy as sa
from databases import BOTH_DIALECTS
from schema_rows import go_to, held
from stored_rows import assert_files_are_those_of_the_rows

import models
from service.backups.format import (
    FORMAT,
    NAME,
    FilesPart,
    KeptFile,
    Manifest,
    TablePart,
    read_manifest,
    sealed,
    write_part,
)
from service.backups.restore import restore
from service.backups.rows import kinds_of, read_lines
from service.storage.database import make_engine
from service.storage.tenants import ALL_TENANTS, set_tenant

FIRST = "0001"


def as_it_was(connection):
    """Return the tables that the database has, with the columns that it has of each."""
    found = sa.inspect(connection)
    for table in models.Base.metadata.sorted_tables:
        if found.has_table(table.name):
            names = {column["name"] for column in found.get_columns(table.name)}
            columns = [
                sa.Column(c.name, c.type, primary_key=c.primary_key)
                for c in table.columns
                if c.name in names
            ]
            yield sa.Table(table.name, sa.MetaData(), *columns)


def write_older(url, folder):
    """Write the rows of a database to a backup, as the program of its revision would."""
    engine = make_engine(url)
    with engine.connect() as connection:
        set_tenant(connection, ALL_TENANTS)
        tables = list(as_it_was(connection))
        parts = tuple(
            TablePart(
                str(table.name),
                kinds_of(table),
                write_part(folder, f"rows/{table.name}.jsonl", read_lines(connection, table)),
            )
            for table in tables
        )
        of = next(table.c for table in tables if table.name == "artifact")
        keys = sa.select(of.key, of.sha256, of.size).distinct().order_by(of.key)
        lines = [KeptFile(*row).line() for row in connection.execute(keys)]
    engine.dispose()
    files = FilesPart(write_part(folder, "files.jsonl", lines), read_manifest(folder).files.bytes)
    manifest = Manifest(FORMAT, "0.0.1", "long ago", FIRST, parts, files)
    (folder / NAME).write_bytes(sealed(manifest))


@BOTH_DIALECTS
def test_an_older_backup_is_brought_up_to_date(place, backup, dialect, empty_place):
    into = empty_place(dialect, migrated=True)
    go_to(place.url, FIRST)
    write_older(place.url, backup)
    restore(into.url, into.artifacts, backup)
    assert_files_are_those_of_the_rows(into)
    go_to(place.url, "head")
    expected, found = held(place.url), held(into.url)
    for rows in (expected, found):  # jobs that ran are handed back
        rows["calibration"] = [row for row in rows["calibration"] if row["version"] != 3]
    assert found == expected
