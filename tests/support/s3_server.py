"""A real S3 server for the tests: rclone's, over a folder, as a process of its own."""

import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

BUCKET = "artifacts"
KEY, SECRET = "key", "secret"
STOP_SECONDS = 30


class S3Server:
    """Serves one bucket; may be stopped and started again at its port, with what it holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / BUCKET).mkdir(parents=True)
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                _rclone(),
                "serve",
                "s3",
                f"--addr=127.0.0.1:{self.port}",
                f"--auth-key={KEY},{SECRET}",
                str(self._folder),
            ],
            env={"RCLONE_CONFIG": str(self._folder / "none.conf"), "HOME": str(self._folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = self._announced_port()
        # A log that nobody reads would stop it when the pipe is full.
        self._reader = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """Kill it: whoever waits for an answer gets none."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        self._process.stderr.close()

    def spoil(self, key: str, content: bytes) -> None:
        """Change an object to another of the same size, behind the server's back."""
        path = self._folder / BUCKET / key
        assert path.stat().st_size == len(content)
        path.write_bytes(content)

    def objects(self) -> list[str]:
        """Return all that lies in the bucket, parts of uploads among them."""
        root = self._folder / BUCKET
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def _announced_port(self) -> int:
        said = []
        for line in self._process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found[1])
            said.append(line)
        raise AssertionError(f"the S3 server did not start: {''.join(said)}")


def s3_variables(port: int, *, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    """Return the environment of a client of the server behind a port of this machine."""
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }


def _rclone() -> str:
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    assert found, "rclone is not installed: it comes with the development dependencies"
    return found
