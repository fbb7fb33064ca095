"""Tests of the separation of tenants: twins of all rows, and statements without the tenant."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from databases import listening
from schema_rows import HEAD_ROWS, TENANT_ID, fill
from sqlalchemy import Engine

import models
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS

TABLES = models.Base.metadata.sorted_tables
OFFSET = 10**6
NUMBERS = {("bin_table", "id"), ("bin", "bin_table_id")}
KEYS = {(table, "key") for table in ("artifact", "released_file", "idempotency_key")}
TEXTS = {("tenant", "name"), *KEYS}


def tenant_column(table: sa.Table) -> sa.Column[uuid.UUID]:
    """Return the column that names the tenant of a row."""
    return table.c.id if table.name == "tenant" else table.c.tenant_id


def twin_of(value: Any, *, of: tuple[str, str] = ("", "")) -> Any:
    """Return the value that the twin of a row has in this table and column."""
    if isinstance(value, uuid.UUID):
        return uuid.UUID(int=value.int + OFFSET)
    if of in NUMBERS:
        return value + OFFSET
    if of in TEXTS:
        return f"twin of {value}"
    return value[::-1] if of == ("api_key", "id") else value


def fill_with_twins(database: Database) -> None:
    """Put rows of two tenants, and of a twin of each, into a database that is up to date."""
    fill(database.engine.url.render_as_string(hide_password=False))
    with database.session(ALL_TENANTS) as session:
        session.add(models.Tenant(id=twin_of(TENANT_ID), name="twin of the default tenant"))
        session.flush()
        for table in TABLES:
            for row in HEAD_ROWS[table.name]:
                twin = {
                    column: twin_of(value, of=(table.name, column)) for column, value in row.items()
                }
                session.execute(sa.insert(table).values(twin))


# As the driver of PostgreSQL gets it: calibration.tenant_id = %(tenant_id_1)s::UUID
_CRITERION = re.compile(r"\w+\.tenant_id = %\(\w+\)s(::UUID)?")


@contextmanager
def forgotten_tenants() -> Iterator[list[str]]:
    """Remove the comparison with a tenant from each statement; yield those that had one."""
    shortened: list[str] = []

    def forget(
        _connection: object, _cursor: object, statement: str, parameters: Any, *_: object
    ) -> tuple[str, Any]:
        found = _CRITERION.sub("true", statement)
        if found != statement:
            shortened.append(statement)
        return found, parameters

    with listening(Engine, "before_cursor_execute", forget, retval=True):
        yield shortened
