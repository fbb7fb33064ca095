"""Disks that can be filled and freed while the service runs."""

import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

SIZE_BYTES = 32 * 1024**2
BALLAST = ".ballast"


class Disk(Protocol):
    """What takes no more, until it is freed."""

    def fill(self) -> None:
        """Leave room for nothing."""

    def free(self) -> None:
        """Leave room as before."""


class SmallDisk:
    """A file system of its own in memory, filled by a file."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / BALLAST

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink()


class DatabaseDisk(SmallDisk):
    """The one of a SQLite file, whose log has room for many a write unless it is cut first."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self._file = file

    def fill(self) -> None:
        with closing(sqlite3.connect(self._file, timeout=15)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        super().fill()


class FileSizeLimit:
    """A limit of the kernel on how far a process may write into a file: none at all."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = resource.prlimit(pid, resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        _, hard = self._before
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (0, hard))

    def free(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, self._before)


class SeveralDisks:
    """All of them at once."""

    def __init__(self, *disks: Disk) -> None:
        self._disks = disks

    def fill(self) -> None:
        for disk in self._disks:
            disk.fill()

    def free(self) -> None:
        for disk in self._disks:
            disk.free()


@contextmanager
def small_disks(*folders: Path) -> Iterator[dict[str, Disk]]:
    """Mount a small file system on each folder; none where that is not allowed."""
    with ExitStack() as mounted:
        disks: dict[str, Disk] = {}
        for folder in folders:
            if not _mount(folder):
                break
            mounted.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            disks[folder.name] = SmallDisk(folder)
        yield disks


def _mount(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return False
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0
