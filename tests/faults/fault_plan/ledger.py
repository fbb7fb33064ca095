"""The ledger: requests and responses, in a file outside the service."""

import itertools
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One upload, sent once or again with the same key, and its last response.

    ``status`` is None without a response; ``replayed`` says that the service returned an earlier
    calibration.
    """

    number: int
    name: str
    kind: str
    sent_at: float
    status: int | None = None
    calibration: str | None = None
    version: int | None = None
    detail: str | None = None
    replayed: bool = False
    answered_at: float | None = None

    @property
    def key(self) -> str:
        return f"upload-{self.number}"

    @property
    def is_accepted(self) -> bool:
        return self.status in (201, 202)


class Ledger:
    """Writes a line before each request and one after its response."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def sent(self, kind: str, name: str | None = None) -> Entry:
        """Record a request before it is sent; without a name it gets its own."""
        number = next(self._numbers)
        entry = Entry(number, name or f"{kind}-{number}", kind, time.time())
        self._write(number=number, name=entry.name, kind=kind, sent_at=entry.sent_at)
        return entry

    def answered(
        self,
        entry: Entry,
        status: int | None,
        *,
        calibration: str | None = None,
        version: int | None = None,
        detail: str | None = None,
        replayed: bool = False,
    ) -> None:
        """Record the response; the status None means that there is none."""
        answer = {"status": status, "calibration": calibration, "version": version}
        answer |= {"detail": detail, "replayed": replayed}
        self._write(number=entry.number, **answer, answered_at=time.time())

    def entries(self) -> list[Entry]:
        """Read the file."""
        found: dict[int, dict] = {}
        for line in self._path.read_text().splitlines():
            said = json.loads(line)
            found.setdefault(said["number"], {}).update(said)
        return [Entry(**said) for said in found.values()]

    def _write(self, **said: object) -> None:
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(said) + "\n")
