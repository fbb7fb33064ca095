"""Restore a backup into a database and an artifact store that are empty."""

import hashlib
from pathlib import Path

from sqlalchemy import Connection, column, delete, inspect, literal, select, table
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError

from models import DEFAULT_TENANT, Base
from service.backups.back_up import Tell, silent
from service.backups.format import (
    NAME,
    KeptFile,
    Manifest,
    damaged,
    open_part,
    read_files,
    read_manifest,
    read_part,
)
from service.backups.rows import write_lines
from service.errors import Conflict, InvalidInput
from service.storage.artifact_store import ArtifactStore
from service.storage.database import database_failures, make_engine
from service.storage.schema import begin_at, is_known, upgrade_within
from service.storage.tenants import ALL_TENANTS, set_tenant

# Alembic's own.
REVISION_TABLE = "alembic_version"
# Somebody sealed a part whose lines are no rows of its table.
_NO_ROWS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    DataError,
    ProgrammingError,
)


def verify(folder: Path, manifest: Manifest, tell: Tell) -> None:
    """Read and verify a whole backup.

    Raises
    ------
    InvalidInput
        If a part is missing or damaged; the message names it.
    """
    for part in (*(stored.part for stored in manifest.tables), manifest.files.part):
        for _ in read_part(folder, part):
            pass
    done, total = 0, manifest.files.bytes
    for file in read_files(folder, manifest):
        _verify_file(folder, file)
        done += file.size
        tell("checking", done, total)


def _verify_file(folder: Path, file: KeptFile) -> None:
    with open_part(folder, file.path) as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != file.sha256:
        raise damaged(file.path)


def restore(
    database_url: str, artifacts: ArtifactStore, source: Path, *, tell: Tell = silent
) -> Manifest:
    """Restore the backup in the folder ``source``; return its manifest.

    The backup is verified before anything is written. Then the files are stored, and finally the
    rows in one transaction, which also upgrades the schema. A process that dies leaves an empty
    database, and files that a second restore overwrites.

    Raises
    ------
    InvalidInput
        If the backup is damaged, or made by a newer version of the program.
    Conflict
        If the database or the artifact store is not empty.
    """
    manifest = read_manifest(source)
    if not is_known(manifest.revision):
        raise InvalidInput.at(
            str(source),
            f"howsure {manifest.program} made this backup: restore it with that version or a newer",
        )
    # Without foreign keys, as migrations need it; they check them at their end.
    engine = make_engine(database_url, foreign_keys=False)
    try:
        with database_failures(), engine.begin() as connection:
            _require_no_rows(connection, manifest)
        _require_no_files(artifacts, source, manifest)
        verify(source, manifest, tell)
        _store_files(artifacts, source, manifest, tell)
        with database_failures(), engine.begin() as connection:
            _require_no_rows(connection, manifest)
            _insert_rows(connection, source, manifest, tell)
    except IntegrityError as error:
        raise _not_empty("another process writes to it") from error
    finally:
        engine.dispose()
    return manifest


def _require_no_rows(connection: Connection, manifest: Manifest) -> None:
    set_tenant(connection, ALL_TENANTS)
    own = {part.name for part in manifest.tables} | set(Base.metadata.tables)
    own -= {REVISION_TABLE}
    for name in sorted(own & set(inspect(connection).get_table_names())):
        rows = select(literal(1)).select_from(table(name)).limit(1)
        if name == "tenant":  # each database begins with one
            rows = rows.where(column("name") != DEFAULT_TENANT)
        if connection.execute(rows).first() is not None:
            raise _not_empty(f"there are rows in {name!r}")


def _require_no_files(artifacts: ArtifactStore, source: Path, manifest: Manifest) -> None:
    others = set(artifacts.keys())
    if others:
        # A restore that was killed left some, which are written again.
        others.difference_update(file.key for file in read_files(source, manifest))
    if others:
        raise Conflict(
            f"The place for artifacts is not empty: {len(others)} files there are not the "
            "backup's. Restore into a new one (HOWSURE_ARTIFACTS_URL, or HOWSURE_DATA_DIR)."
        )


def _store_files(artifacts: ArtifactStore, source: Path, manifest: Manifest, tell: Tell) -> None:
    done = 0
    for file in read_files(source, manifest):
        with open_part(source, file.path) as content:
            stored = artifacts.put_file(file.key, Path(f"/dev/fd/{content.fileno()}"))
        if stored.sha256 != file.sha256:
            raise damaged(file.path)
        done += file.size
        tell("files", done, manifest.files.bytes)


def _insert_rows(connection: Connection, source: Path, manifest: Manifest, tell: Tell) -> None:
    tell("rows", 0, 0)
    begin_at(connection, manifest.revision)
    _require_own_tables(connection, manifest)
    for found in reversed(manifest.tables):  # the tenant that the migrations made
        connection.execute(delete(table(found.name)))
    for found in manifest.tables:
        try:
            write_lines(connection, found.name, found.columns, read_part(source, found.part))
        except _NO_ROWS as error:
            raise damaged(found.part.path) from error
    upgrade_within(connection)


def _require_own_tables(connection: Connection, manifest: Manifest) -> None:
    """Refuse tables and columns that the schema of the backup's revision lacks."""
    schema = inspect(connection)
    tables = set(schema.get_table_names()) - {REVISION_TABLE}
    for part in manifest.tables:
        if part.name not in tables or not part.columns.keys() <= {
            column["name"] for column in schema.get_columns(part.name)
        }:
            raise damaged(NAME)


def _not_empty(why: str) -> Conflict:
    return Conflict(
        f"The database is not empty, {why}: restore into a new one (HOWSURE_DATABASE_URL, or "
        "HOWSURE_DATA_DIR)."
    )
