"""A backup that an older version of the service made is restored and brought up to date."""

import json
import math

import sqlalchemy as sa
from databases import BOTH_DIALECTS
from schema_rows import connected, go_to, held
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
from service.backups.rows import kinds_of

FIRST = "0001"


def tables_of(connection):
    """Return the tables that the database has, with the columns that it has of each."""
    reflected = sa.MetaData()
    reflected.reflect(connection)
    for table in models.Base.metadata.sorted_tables:
        if table.name in reflected.tables:
            columns = [
                sa.Column(c.name, c.type, primary_key=c.primary_key)
                for c in table.columns
                if c.name in reflected.tables[table.name].columns
            ]
            yield sa.Table(table.name, sa.MetaData(), *columns)


def lines_of(connection, table):
    """Yield rows as programs of that revision wrote them: numbers that JSON lacks as text."""
    for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
        values = [repr(v) if isinstance(v, float) and not math.isfinite(v) else v for v in row]
        yield json.dumps(values, allow_nan=False, default=str).encode()


def write_older(url, folder):
    """Write the rows of a database to a backup, as the program of its revision would."""
    with connected(url) as connection:
        tables = {str(table.name): table for table in tables_of(connection)}
        parts = tuple(
            TablePart(
                name,
                kinds_of(table),
                write_part(folder, f"rows/{name}.jsonl", lines_of(connection, table)),
            )
            for name, table in tables.items()
        )
        of = tables["artifact"].c
        keys = sa.select(of.key, of.sha256, of.size).distinct().order_by(of.key)
        lines = [KeptFile(*row).line() for row in connection.execute(keys)]
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
