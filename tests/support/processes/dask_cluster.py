"""A Dask scheduler and workers as processes of their own, to be killed."""

import json
import os
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from distributed import Client


class DaskCluster:
    """A scheduler on a free port; workers read the settings that are given here."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._settings = {f"HOWSURE_{name.upper()}": value for name, value in settings.items()}
        self._running = ExitStack()  # what ends with the block

    def __enter__(self) -> Self:
        # A start that fails leaves no process either.
        with self._running:
            file = self._folder / "scheduler.json"
            scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(file))
            self.address = _written_address(file, scheduler)
            client = Client(self.address, set_as_default=False)
            self.client = self._running.enter_context(client)
            self._running = self._running.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def add_worker(self, *, resources: str = "CORE=1") -> subprocess.Popen[bytes]:
        """Start a worker of one thread; it is there when this returns."""
        name = uuid.uuid4().hex
        process = self._start(
            "worker",
            self.address,
            *("--nthreads", "1", "--no-nanny", "--resources", resources, "--name", name),
            *("--local-directory", str(self._folder)),
        )
        # Not by their number: one that was killed just now may be counted still.
        while name not in self._names():
            assert process.poll() is None, "the Dask worker has ended"
            time.sleep(0.05)
        return process

    def _names(self) -> set[str]:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {str(worker["name"]) for worker in workers.values()}

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL: no handler runs, nothing is cleaned up."""
        process.kill()
        process.wait()

    def _start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        environment = os.environ | self._settings
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
        with (self._folder / f"{kind}.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--no-dashboard"],
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._running.callback(self.kill, process)
        return process


def _written_address(file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """Return the address of a scheduler once it has written its file to the end."""
    while True:
        assert scheduler.poll() is None, "the Dask scheduler has ended"
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.02)
