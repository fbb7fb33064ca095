"""A PostgreSQL server for the tests: one that runs, or one started from installed binaries."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

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
    """Yield the URL of a server on which databases may be created."""
    named = os.environ.get(SERVER_URL_VARIABLE)
    if named:
        # A server asked for by name that does not answer is an error, not a reason to skip.
        psycopg.connect(libpq_url(named), connect_timeout=5).close()
        yield named
        return
    for url in LOCAL_URLS:
        if _may_create_databases(url):
            yield url
            return
    with _started_server() as url:
        yield url


def libpq_url(url: str) -> str:
    """Return the URL as the PostgreSQL client library writes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _may_create_databases(url: str) -> bool:
    query = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=2) as connection:
            return bool(connection.execute(query).fetchone()[0])
    except psycopg.OperationalError:
        return False


@contextmanager
def _started_server() -> Iterator[str]:
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="howsure-postgres-"))
    # PostgreSQL refuses to run as root.
    user = UNPRIVILEGED_USER if os.geteuid() == 0 else None
    try:
        if user is not None:
            shutil.chown(folder, user)
        data, log = folder / "data", folder / "log"
        _run(
            [binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N"],
            user=user,
            cwd=folder,
        )
        port = _free_port()
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
        _run(
            [binaries / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"],
            user=user,
            cwd=folder,
        )
        try:
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        finally:
            _run([binaries / "pg_ctl", "-D", data, "-m", "fast", "stop"], user=user, cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    found = [Path(path) for path in [shutil.which("initdb")] if path is not None]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    for initdb in found:
        if (initdb.resolve().parent / "pg_ctl").exists():
            return initdb.resolve().parent
    raise NoServerError(
        f"no PostgreSQL answers at 127.0.0.1:5432, {SERVER_URL_VARIABLE} is not set, "
        "and initdb is not installed"
    )


def _run(command: list[object], *, user: str | None, cwd: Path) -> None:
    # Output goes to a file: a server that inherits a pipe would keep it open for ever.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(part) for part in command],
            user=user,
            cwd=cwd,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            output.seek(0)
            raise NoServerError(f"{command[0]} failed: {output.read().decode()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
