"""Databases of tests: SQLite files and schemas of a PostgreSQL server."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import NullPool, Pool, create_engine, delete, event, make_url, text

import models
from service.storage.database import Database, open_database
from service.storage.schema import upgrade
from service.storage.tenants import ALL_TENANTS, set_tenant

DIALECTS = ("sqlite", "postgresql")
# For tests of folders where one dialect is enough for most.
BOTH_DIALECTS = pytest.mark.parametrize("dialect", DIALECTS)


@cache
def migrated_sqlite() -> bytes:
    """Return a SQLite file that is up to date: to copy it is quicker than to migrate another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "migrated.sqlite3")
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()


def put_sqlite_file(url: str) -> None:
    """Write a file that is up to date where a service would make one; others stay as they are."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return
    path = Path(parsed.database)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(migrated_sqlite())


@contextmanager
def opened_database(url: str) -> Iterator[Database]:
    """Open a database until the block ends."""
    database = open_database(url)
    try:
        yield database
    finally:
        database.dispose()


@contextmanager
def scratch_database() -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database, dropped afterwards.

    Its user is an ordinary role, so that row-level security is in force as in operation. Where
    there is no server the test is skipped with the reason; in CI it fails.
    """
    try:
        with postgres_server() as server, ordinary_database(server) as url:
            yield url
    except NoServerError as error:
        if os.environ.get("CI"):
            pytest.fail(f"PostgreSQL is required in CI: {error}")
        pytest.skip(f"PostgreSQL: {error}")


@contextmanager
def scratch_schema(database_url: str) -> Iterator[str]:
    """Yield the URL of an empty schema of the database, dropped afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    _execute(database_url, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        # Commits that wait for the disk would double the time of the suite.
        options = f"-csearch_path={name} -csynchronous_commit=off"
        url = make_url(database_url).update_query_dict({"options": options})
        yield url.render_as_string(hide_password=False)
    finally:
        _execute(database_url, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


class MigratedSchemas:
    """Lends schemas of a database that are up to date; one that comes back empty is lent again.

    A test that changes a schema makes one of its own.
    """

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._made = ExitStack()
        self._free: list[str] = []

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Yield the URL of a schema that holds what the migrations put there, and nothing else."""
        url = self._free.pop() if self._free else self._make()
        yield url
        if _emptied(url):
            self._free.append(url)

    def close(self) -> None:
        """Drop them all."""
        self._made.close()

    def _make(self) -> str:
        url = self._made.enter_context(scratch_schema(self._database_url))
        upgrade(url)
        return url


def _emptied(url: str) -> bool:
    """Undo what a test wrote; not while somebody who could write is connected still."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with create_engine(url, poolclass=NullPool).begin() as connection:
        if connection.scalar(text(f"{others} AND pid <> pg_backend_pid()")):
            return False
        set_tenant(connection, ALL_TENANTS)
        # As the owner of the database prunes the audit table, and nobody else can.
        connection.execute(text("ALTER TABLE audit_entry DISABLE TRIGGER USER"))
        for table in reversed(models.Base.metadata.sorted_tables):
            if table.name != "tenant":
                connection.execute(table.delete())
        connection.execute(delete(models.Tenant).where(models.Tenant.name != models.DEFAULT_TENANT))
        connection.execute(text("ALTER TABLE audit_entry ENABLE TRIGGER USER"))
    return True


@contextmanager
def ordinary_database(server_url: str) -> Iterator[str]:
    """Yield the URL of a database and of the role that owns it, which is no superuser."""
    name, url = f"howsure_test_{uuid.uuid4().hex}", make_url(server_url)
    role = sql.Identifier(name)
    create_role = sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}")
    _execute(server_url, create_role.format(role, sql.Literal(url.password)))
    try:
        _execute(server_url, sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
        yield url.set(username=name, database=name).render_as_string(hide_password=False)
    finally:
        _execute(server_url, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(role))
        _execute(server_url, sql.SQL("DROP ROLE {}").format(role))


def _execute(url: str, statement: sql.Composable) -> None:
    with psycopg.connect(libpq_url(url), autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement)


SERVER_URL_VARIABLE = "HOWSURE_TEST_POSTGRES_URL"
LOCAL_URLS = (
    "postgresql+psycopg://postgres@127.0.0.1:5432/postgres",
    "postgresql+psycopg://root@127.0.0.1:5432/postgres",
)
UNPRIVILEGED_USER = "nobody"


class NoServerError(Exception):
    """There is no PostgreSQL here, and why."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of a server, with a superuser of it."""
    named = os.environ.get(SERVER_URL_VARIABLE)
    if named:
        # A server asked for by name that does not answer is an error, not a reason to skip.
        psycopg.connect(libpq_url(named), connect_timeout=5).close()
        yield named
        return
    for url in LOCAL_URLS:
        if _is_superuser(url):
            yield url
            return
    with PostgresServer(fsync=False) as server:
        yield server.url


def libpq_url(url: str) -> str:
    """Return the URL as the PostgreSQL client library writes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _is_superuser(url: str) -> bool:
    query = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=2) as connection:
            return bool(connection.execute(query).fetchone()[0])
    except psycopg.OperationalError:
        return False


class PostgresServer:
    """A server of one's own, started from installed binaries, which may be stopped at will.

    ``fsync=False`` makes it quicker: what it keeps then outlives its processes and no machine.
    With ``password`` it refuses every other one.
    """

    def __init__(self, *, fsync: bool = True, password: str | None = None) -> None:
        self._password = password
        self._binaries = postgres_programs()
        self._folder = Path(tempfile.mkdtemp(prefix="howsure-postgres-"))
        self._fsync = "on" if fsync else "off"
        # PostgreSQL refuses to run as root.
        self._user = UNPRIVILEGED_USER if os.geteuid() == 0 else None
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        try:
            access = ["-A", "trust"]
            if self._password is not None:
                file = self._folder / "password"
                file.write_text(self._password)
                access = ["-A", "scram-sha-256", "--pwfile", file]
            if self._user is not None:
                for path in (self._folder, *self._folder.iterdir()):
                    shutil.chown(path, self._user)
            self._do("initdb", *access, "-U", "postgres", "-E", "UTF8", "-N")
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._remove()

    def start(self) -> None:
        """Start it, and return once it answers."""
        options = (
            f"-c listen_addresses=127.0.0.1 -p {self._port} -k {self._folder} "
            f"-c fsync={self._fsync}"
        )
        self._do("pg_ctl", "-l", self._folder / "log", "-w", "-o", options, "start")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it; ``immediate`` is a crash, from which its next start recovers."""
        self._do("pg_ctl", "-m", mode, "stop")

    def processes(self) -> list[int]:
        """Return the process ids of the server and of all that it has started."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _do(self, program: str, *options: object) -> None:
        # Output goes to a file: a server that inherits a pipe would keep it open for ever.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self._binaries / program), "-D", str(self._data), *map(str, options)],
                user=self._user,
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=60,
            )
            if done.returncode != 0:
                output.seek(0)
                raise NoServerError(f"{program} failed: {output.read().decode()}")

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def postgres_programs() -> Path:
    """Return the folder of the installed programs of PostgreSQL."""
    found = [Path(path) for path in [shutil.which("initdb")] if path is not None]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    for initdb in found:
        if (initdb.resolve().parent / "pg_ctl").exists():
            return initdb.resolve().parent
    raise NoServerError(
        f"no PostgreSQL answers at 127.0.0.1:5432, {SERVER_URL_VARIABLE} is not set, "
        "and initdb is not installed"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(
    target: Any, name: str, listener: Callable[..., Any], **options: Any
) -> Iterator[None]:
    """Call a listener at an event of SQLAlchemy, within the block."""
    event.listen(target, name, listener, **options)
    try:
        yield
    finally:
        event.remove(target, name, listener)


_WATCHING: list[Callable[[], None]] = []


@event.listens_for(Pool, "checkout")
def _begin(*_: object) -> None:
    # Listeners that come and go would disturb threads that begin transactions meanwhile.
    for watch in tuple(_WATCHING):
        watch()


@contextmanager
def before_transaction(
    number: int, happen: Callable[[], object], *, threads: tuple[str, ...]
) -> Iterator[list[int]]:
    """Let something happen before a transaction of threads whose names begin so, counted from 1.

    Yield a list that has one entry for each transaction that they begin.
    """
    begun: list[int] = []
    happening = threading.Event()

    def watch() -> None:
        if happening.is_set() or not threading.current_thread().name.startswith(threads):
            return
        begun.append(len(begun))
        if len(begun) == number:
            happening.set()
            happen()
            happening.clear()

    _WATCHING.append(watch)
    try:
        yield begun
    finally:
        _WATCHING.remove(watch)
