"""The clock of the database as an SQL expression: hosts disagree about the time, it does not."""

from datetime import datetime

from sqlalchemy import Double, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from models.utc_datetime import UtcDateTime


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
