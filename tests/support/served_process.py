"""The service as its own process, to be killed."""

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from howsure_command import Command


class ServedProcess:
    """`howsure serve` on a folder, on a free port; killed with its children when the block ends.

    ``words`` are what stands behind ``howsure``.
    """

    def __init__(self, folder: Path, words: Sequence[str] = ("serve",), **settings: str) -> None:
        options = {
            "HOWSURE_DATA_DIR": str(folder),
            "HOWSURE_PORT": "0",
            "HOWSURE_WORKER_PORT": "0",
            "HOWSURE_DEVICE": "cpu",
        } | {f"HOWSURE_{name.upper()}": value for name, value in settings.items()}
        self.log = folder / "serve.log"
        self.log.touch()
        self.seen = len(self.log.read_text())
        self.process = Command(
            list(words), folder=folder, settings=options, out=Path(os.devnull), err=self.log
        )

    def __enter__(self) -> httpx.Client:
        self.client = httpx.Client(base_url=self._address(), timeout=60)
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL: no handler runs, nothing is cleaned up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _address(self) -> str:
        while self.process.poll() is None:
            found = re.search(r"http://[\d.]+:\d+", self.log.read_text()[self.seen :])
            if found:
                return found[0]
            time.sleep(0.01)
        raise AssertionError(f"the service did not start: {self.log.read_text()[self.seen :]}")
