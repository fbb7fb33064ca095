"""A PostgreSQL server for the tests: one that runs, or one started from installed binaries."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

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
    with PostgresServer(fsync=False) as server:
        yield server.url


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


class PostgresServer:
    """A server of one's own, started from installed binaries, which may be stopped at will.

    ``fsync=False`` makes it quicker: what it keeps then outlives its processes and no machine.
    """

    def __init__(self, *, fsync: bool = True) -> None:
        self._binaries = _binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="howsure-postgres-"))
        self._fsync = "on" if fsync else "off"
        # PostgreSQL refuses to run as root.
        self._user = UNPRIVILEGED_USER if os.geteuid() == 0 else None
        self._port = _free_port()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        try:
            if self._user is not None:
                shutil.chown(self._folder, self._user)
            self._do("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N")
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
        command = [self._binaries / program, "-D", self._data, *options]
        _run(command, user=self._user, cwd=self._folder)

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


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
