"""Write a backup while the service runs."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Connection, Row, func, select

from models import Artifact, Base, Calibration, database_now
from service.backups.format import (
    FILES,
    FORMAT,
    NAME,
    FilesPart,
    KeptFile,
    Manifest,
    TablePart,
    read_files,
    sealed,
    write_part,
)
from service.backups.rows import STREAMED, kinds_of, read_lines
from service.errors import ArtifactDamaged, Conflict
from service.storage.artifact_store import ArtifactStore, flush_to_disk
from service.storage.database import Database
from service.storage.schema import head, require_current
from service.storage.tenants import ALL_TENANTS

# Called with the stage, the finished bytes, and all bytes; both are 0 if unknown.
Tell: TypeAlias = Callable[[str, int, int], None]


def silent(_stage: str, _done: int, _total: int, /) -> None:
    """Report no progress."""


SUFFIX = ".partial"


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Yield an empty folder ``TARGET.partial``, which becomes ``TARGET`` at the end of the block.

    A killed process leaves ``TARGET.partial``; the next backup to the same target overwrites it.
    An exception leaves nothing.

    Raises
    ------
    Conflict
        If the target exists, or another process writes to it.
    """
    if target.exists():
        raise Conflict(f"{target} exists: choose another name for the backup.")
    folder = target.with_name(target.name + SUFFIX)
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder, target)
    try:
        _empty(folder)
        folder.chmod(0o700)  # an older one may be open to others
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        folder.rename(target)
        flush_to_disk(target, target.parent)
    finally:
        os.close(lock)


def _lock(folder: Path, target: Path) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(folder, flags)
    except OSError as error:
        raise Conflict(f"{folder} is no folder: remove it, or choose another name.") from error
    refusal = f"{target} exists: choose another name for the backup."
    with suppress(FileNotFoundError):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that held the lock may have finished and renamed the folder.
            if os.path.samestat(os.fstat(lock), folder.lstat()):
                return lock
        except BlockingIOError:
            refusal = f"Another backup is being written to {target}."
    os.close(lock)
    raise Conflict(refusal)


def _empty(folder: Path) -> None:
    for found in folder.iterdir():
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink()


CHUNK_BYTES = 2**20


class Copies:
    """The files copied so far; a later snapshot does not copy them again."""

    def __init__(self, folder: Path, artifacts: ArtifactStore) -> None:
        self._folder = folder
        self._artifacts = artifacts
        folder.mkdir()

    def add(self, file: KeptFile, copied: Callable[[int], None]) -> bool:
        """Copy a file and report the bytes; return False if the file is missing or damaged."""
        path = self._folder / file.sha256
        if path.exists():
            copied(file.size)
            return True
        begun = path.with_suffix(".partial")
        try:
            with self._artifacts.unverified_path(file.key) as source:
                digest = _copy(source, begun, copied)
        except (ArtifactDamaged, FileNotFoundError):
            return False
        if digest != file.sha256:
            return False
        begun.rename(path)
        return True

    def keep(self, file: KeptFile, folder: Path) -> None:
        """Move a copied file into the backup in ``folder``."""
        path = self._folder / file.sha256
        if path.exists():  # another key may have had the same content
            path.rename(folder / file.path)


def _copy(source: Path, target: Path, copied: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            writing.write(chunk)
            copied(len(chunk))
        writing.flush()
        os.fsync(writing.fileno())
    return digest.hexdigest()


def back_up(
    database: Database, artifacts: ArtifactStore, target: Path, *, tell: Tell = silent
) -> Manifest:
    """Write a backup to the folder ``target``, which must not exist; return its manifest.

    The rows are a snapshot, and the backup has all files that they name. A file stays for an hour
    after its row. If one goes before it is copied, a new snapshot is taken, and only new files are
    copied.

    Raises
    ------
    Conflict
        If the target exists, or the schema is not up to date.
    ArtifactDamaged
        If a file of an existing calibration is missing or damaged.
    """
    require_current(database)
    with unfinished(target) as folder:
        copies = Copies(folder / "copied", artifacts)
        return _Backup(database, folder, copies, tell).write()


@dataclass(frozen=True)
class _Backup:
    database: Database
    folder: Path
    copies: Copies
    tell: Tell

    def write(self) -> Manifest:
        """Write the backup; return its manifest.

        Raises
        ------
        ArtifactDamaged
            If a file is missing although its row is there.
        """
        while True:
            with self.database.reading(ALL_TENANTS) as session:
                manifest = self._write_rows(session.connection())
            lost = self._copy_files(manifest)
            if lost is None:
                self._finish(manifest)
                return manifest
            with self.database.reading(ALL_TENANTS) as session:
                _require_deleted(session.connection(), lost)

    def _finish(self, manifest: Manifest) -> None:
        """Keep the copied files that the snapshot names; write the manifest last."""
        (self.folder / FILES).mkdir()
        for file in read_files(self.folder, manifest):
            self.copies.keep(file, self.folder)
        shutil.rmtree(self.folder / "copied")
        (self.folder / NAME).write_bytes(sealed(manifest))
        for path in (self.folder / FILES, self.folder / "rows", self.folder / NAME):
            flush_to_disk(path, self.folder)

    def _write_rows(self, connection: Connection) -> Manifest:
        self.tell("rows", 0, 0)
        tables = tuple(
            TablePart(
                str(table.name),
                kinds_of(table),
                write_part(self.folder, f"rows/{table.name}.jsonl", read_lines(connection, table)),
            )
            for table in Base.metadata.sorted_tables
        )
        return Manifest(
            format=FORMAT,
            program=version("howsure"),
            made_at=connection.execute(select(database_now())).scalar_one().isoformat(),
            revision=head(),
            tables=tables,
            files=FilesPart(
                write_part(self.folder, "files.jsonl", _files(connection)), _bytes(connection)
            ),
        )

    def _copy_files(self, manifest: Manifest) -> KeptFile | None:
        done, lost = 0, None

        def copied(count: int) -> None:
            nonlocal done
            done += count
            self.tell("files", min(done, manifest.files.bytes), manifest.files.bytes)

        for file in read_files(self.folder, manifest):
            if not self.copies.add(file, copied):
                lost = file
        return lost


_KEYS = select(Artifact.key, Artifact.sha256, Artifact.size).distinct()


def _files(connection: Connection) -> Iterator[bytes]:
    for row in connection.execute(_KEYS.order_by(Artifact.key), execution_options=STREAMED):
        yield KeptFile(row.key, row.sha256, row.size).line()


def _bytes(connection: Connection) -> int:
    keys = _KEYS.subquery()
    return int(connection.scalar(select(func.coalesce(func.sum(keys.c.size), 0))) or 0)


def _require_deleted(connection: Connection, file: KeptFile) -> None:
    """Refuse to go on without a file whose row is still there."""
    of = Artifact.calibration_id == Calibration.id
    owner: Row[str, int, str, int] | None = connection.execute(
        select(Calibration.name, Calibration.version, Artifact.role, Artifact.position)
        .join(Artifact, of)
        .where(Artifact.key == file.key)
        .order_by(Calibration.created_at)
    ).first()
    if owner is not None:
        name = f"{owner.name}@{owner.version}"
        raise ArtifactDamaged(
            f"The stored file {owner.role} {owner.position} of {name} is missing or damaged: "
            f"bring {file.key} back, or delete {name}."
        )
