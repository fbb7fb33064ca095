"""The declarative base: how constraints are named and which SQL type a Python type takes."""

import math
from datetime import UTC, datetime
from typing import get_args

from sqlalchemy import DateTime, Dialect, Double, Enum, MetaData, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A time with its zone: ``timestamptz`` on PostgreSQL, text of fixed width on SQLite.

    SQLite keeps no zone, so what is stored there is UTC; its text sorts as the times do.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn an aware datetime into UTC; a naive one is refused, for nobody knows its zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time needs its zone: {value!r}")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored time as an aware datetime in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class FiniteNumber(TypeDecorator[float]):
    """A number of double precision. Infinite ones and NaN are refused: JSON cannot say them."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:  # noqa: ARG002  (SQLAlchemy's own protocol)
        """Return a finite number as it is."""
        if value is not None and not math.isfinite(value):
            raise ValueError(f"expected a finite number, got {value}")
        return value


class DatabaseNow(FunctionElement[datetime]):
    """The time at which the statement runs, moved by an offset in seconds."""

    inherit_cache = True
    type = UtcDateTime()


def database_now(offset_seconds: float = 0.0) -> DatabaseNow:
    """Return the database's time, ``offset_seconds`` from now."""
    return DatabaseNow(literal(float(offset_seconds), Double()))


@compiles(DatabaseNow, "postgresql")
def _on_postgresql(element: DatabaseNow, compiler: SQLCompiler, **options: object) -> str:
    # now() stands still within a transaction: a lease would then start before a wait for a lock.
    offset = compiler.process(element.clauses, **options)
    return f"(clock_timestamp() + make_interval(secs => CAST({offset} AS DOUBLE PRECISION)))"


@compiles(DatabaseNow, "sqlite")
def _on_sqlite(element: DatabaseNow, compiler: SQLCompiler, **options: object) -> str:
    # Six decimals, as SQLAlchemy writes a bound datetime, so that both compare as text.
    offset = compiler.process(element.clauses, **options)
    modifier = f"printf('%.3f seconds', {offset})"
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', {modifier})"


def one_of(alternatives: object, *, name: str, length: int = 32) -> Enum:
    """Return the type of a text column that holds a word of this ``Literal``, and has a CHECK.

    The text is longer than any word of today, so that a new word changes the CHECK alone.
    """
    return Enum(
        *get_args(alternatives),
        native_enum=False,
        create_constraint=True,
        name=name,
        length=length,
    )


NAMING_CONVENTION = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class Base(DeclarativeBase):
    """Base of every table. A child names its parent by tenant and key, never by key alone."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {datetime: UtcDateTime(), float: FiniteNumber()}  # noqa: RUF012  (SQLAlchemy's own protocol)
