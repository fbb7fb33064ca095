"""Alembic's entry: run by ``service.storage.schema`` with a URL, or by its command line without.

With a connection it works in the transaction that the connection is in.
"""

from alembic import context
from sqlalchemy import Connection, text

from models import Base
from service.storage.database import make_engine
from service.storage.tenants import ALL_TENANTS, set_tenant

# Whoever waits for another to migrate waits as long as that may take, and not as for a writer.
PATIENCE_SECONDS = 3600.0
ADVISORY_LOCK = 0x686F7773757265  # the text "howsure", so that no other program picks it by chance


def _url() -> str:
    url = context.config.attributes.get("url")
    if url is None:
        from service.settings import Settings  # noqa: PLC0415 - read by the command line alone

        url = Settings().resolved_database_url()
    return str(url)


def _migrate(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    set_tenant(connection, ALL_TENANTS)
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    context.run_migrations()
    if (
        connection.dialect.name == "sqlite"
        and connection.execute(text("PRAGMA foreign_key_check")).first()
    ):
        raise RuntimeError("the migration left rows without their parents; it is undone")


def _run_online() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        _migrate(given)
        return
    # One transaction for all of it, begun under a lock (SQLite's begins with one): a second process
    # waits, then finds the work done.
    engine = make_engine(_url(), foreign_keys=False, busy_seconds=PATIENCE_SECONDS)
    try:
        with engine.begin() as connection:
            _migrate(connection)
    finally:
        engine.dispose()


def _run_offline() -> None:
    context.configure(
        url=_url(),
        target_metadata=Base.metadata,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
    )
    with context.begin_transaction():
        if context.get_context().dialect.name == "postgresql":
            context.execute("SELECT set_config('howsure.tenant', '*', true)")
        context.run_migrations()


if context.is_offline_mode():
    _run_offline()
else:
    _run_online()
