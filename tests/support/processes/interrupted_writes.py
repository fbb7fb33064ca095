"""Work on a database that dies, or is held, before one of its writes: for processes of a test."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howsure_command import FORKS
from sqlalchemy import Engine, event

from service.backups.back_up import back_up
from service.backups.restore import restore
from service.storage.artifact_store import open_artifact_store
from service.storage.database import open_database
from service.storage.schema import upgrade

KILLED = -signal.SIGKILL
PATIENCE_SECONDS = 60


def begun(work: Callable[..., object], *arguments: object) -> Any:
    """Return a process that has begun this work."""
    process = FORKS.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def status(process: Any) -> int:
    """Wait for the end of a process; return its status."""
    process.join(PATIENCE_SECONDS)
    return process.exitcode


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Interruption:
    """Acts when it is called for the time of this number."""

    def __init__(self, place: int, act: Callable[[], None] = die) -> None:
        self._left = place
        self._act = act

    def __call__(self, *_: object) -> None:
        self._left -= 1
        if self._left == 0:
            self._act()

    def count_writes(self) -> None:
        """Count each statement that writes, and each commit."""

        def listen(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
                self()

        event.listen(Engine, "before_cursor_execute", listen)
        event.listen(Engine, "commit", self)


def upgrade_until(place: int, url: str) -> None:
    """Migrate, and die before this write."""
    Interruption(place).count_writes()
    upgrade(url)


def upgrade_with_a_pause(place: int, url: str, reached: Any, go_on: Any) -> None:
    """Migrate, but wait before this write until the test says to go on."""

    def wait() -> None:
        reached.set()
        go_on.wait(PATIENCE_SECONDS)

    Interruption(place, wait).count_writes()
    upgrade(url)


def back_up_until(place: int, url: str, artifacts: Path, target: Path) -> None:
    """Back up, and die at this step."""
    database = open_database(url)
    back_up(database, open_artifact_store(str(artifacts)), target, tell=Interruption(place))


def restore_until(place: int, url: str, artifacts: Path, source: Path) -> None:
    """Restore, and die before this write, or after this file."""
    interruption = Interruption(place)
    interruption.count_writes()
    restore(url, open_artifact_store(str(artifacts)), source, tell=interruption)
