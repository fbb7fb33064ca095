"""Where the service runs: its folder, database, port and settings."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from databases import free_port
from howsure_command import Command
from runner_children import wait_until

LEASE_SECONDS = 2.0


class Site:
    """A folder and a port on which processes of the service start and stop.

    Parameters
    ----------
    folder : Path
        The service's data folder is ``data`` below it, beside its log.
    database_url : str
        Empty: SQLite in the data folder.
    settings : str
        Further settings of all processes, in lower case and without their prefix.
    """

    def __init__(self, folder: Path, database_url: str = "", **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.artifacts, self.spool = self.data / "artifacts", self.data / "spool"
        self.temporary = folder / "tmp"
        self.log = folder / "service.log"
        for path in (self.data, self.temporary):
            path.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.database_url = database_url or f"sqlite:///{self.data / 'howsure.sqlite3'}"
        self._variables = {
            "HOWSURE_DATA_DIR": str(self.data),
            "HOWSURE_DATABASE_URL": self.database_url,
            "HOWSURE_DEVICE": "cpu",
            "HOWSURE_WORKER_PORT": "0",
            "HOWSURE_THREADS": "1",
            "HOWSURE_LEASE_SECONDS": str(LEASE_SECONDS),
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": str(self.temporary),
        } | {f"HOWSURE_{name.upper()}": value for name, value in settings.items()}

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def start(self, *words: str) -> Command:
        """Start a process of the service without waiting until it is ready."""
        settings = self._variables | {"HOWSURE_PORT": str(self.port)}
        out = Path(os.devnull)
        return Command(list(words), folder=self.folder, settings=settings, out=out, err=self.log)

    def serve(self, *words: str) -> Command:
        """Start ``howsure serve`` and return once it is ready."""
        process = self.start("serve", *words)
        with self.client() as client:

            def is_ready() -> bool:
                assert process.poll() is None, f"the service ended with {process.poll()}"
                return answers(client)

            assert wait_until(is_ready), "the service was not ready in time"
        return process

    @contextmanager
    def serving(self, *words: str) -> Iterator[httpx.Client]:
        """Serve while the block runs; then end the process and wait for it."""
        process = self.serve(*words)
        try:
            with self.client() as client:
                yield client
        finally:
            end(process)

    def left_behind(self) -> list[str]:
        """Return the files in the folders of uploads and of temporary files."""
        spooled = [p for p in self.spool.rglob("*") if p.is_file() and p.name != ".lock"]
        return sorted(str(path) for path in [*spooled, *self.temporary.iterdir()])


def answers(client: httpx.Client) -> bool:
    """Tell whether the service is ready."""
    with suppress(httpx.TransportError):
        return client.get("/readyz").is_success
    return False


def end(process: Command) -> None:
    """Send SIGTERM to a process, and kill it if it does not end."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill(process: Command) -> None:
    """Send SIGKILL: no handler runs, nothing is cleaned up."""
    process.send_signal(signal.SIGKILL)
    process.wait()
