"""The service as its own process, to be killed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx


class ServedProcess:
    """`howsure serve` on a folder, on a free port; killed with its children when the block ends."""

    def __init__(self, folder: Path, **settings: str) -> None:
        options = {
            "HOWSURE_DATA_DIR": str(folder),
            "HOWSURE_PORT": "0",
            "HOWSURE_DEVICE": "cpu",
        } | {f"HOWSURE_{name.upper()}": value for name, value in settings.items()}
        self.log = folder / "serve.log"
        with self.log.open("ab") as log:
            self.seen = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service", "serve"],
                env=os.environ | options,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=folder,
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
        raise AssertionError(f"the service did not start: {self.log.read_text()[self.seen :]}")
