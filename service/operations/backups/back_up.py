"""Write a backup while the service runs."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import Connection, Row, func, select

from models import Artifact, Base, Calibration, database_now
from service.errors import ArtifactDamaged
from service.operations.backups.copies import Copies
from service.operations.backups.manifest import FORMAT, NAME, FilesPart, Manifest, TablePart, sealed
from service.operations.backups.parts import FILES, KeptFile, read_files, write_part
from service.operations.backups.progress import Tell, silent
from service.operations.backups.target import unfinished
from service.storage.artifacts import ArtifactStore
from service.storage.cut import cut
from service.storage.database import Database
from service.storage.durable import flush_to_disk
from service.storage.row_lines import STREAMED, kinds_of, read_lines
from service.storage.schema import head, require_current

FREE_ROUNDS = 3


def back_up(
    database: Database, artifacts: ArtifactStore, target: Path, *, tell: Tell = silent
) -> Manifest:
    """Write a backup to the folder ``target``, which must not exist; return its manifest.

    The rows are those of one moment, and all files are there that they name. A file may go while
    it is to be copied, with its calibration: then a later moment is taken, for which only files
    that are new have to be copied. If files go each time, the last time those who would delete one
    wait.

    Raises
    ------
    Conflict
        If the target exists, or the schema is not up to date.
    ArtifactDamaged
        If a file is missing or damaged of a calibration that is there.
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
        """Write it whole; return its manifest."""
        rounds = 0
        while (manifest := self._attempt(holding_files=rounds >= FREE_ROUNDS)) is None:
            rounds += 1
        self._finish(manifest)
        return manifest

    def _attempt(self, *, holding_files: bool) -> Manifest | None:
        """Take a cut and copy its files; None if one of them is gone meanwhile.

        Raises
        ------
        ArtifactDamaged
            If one is gone although nobody could delete it.
        """
        with ExitStack() as stack:
            connection = stack.enter_context(cut(self.database, holding_files=holding_files))
            manifest = self._write_rows(connection)
            if not holding_files:
                stack.close()
            lost = self._copy_files(manifest)
            if lost is not None and holding_files:
                raise _lost(connection, lost)
        return manifest if lost is None else None

    def _finish(self, manifest: Manifest) -> None:
        """Keep of what was copied what the cut names; the manifest comes last."""
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


def _lost(connection: Connection, file: KeptFile) -> ArtifactDamaged:
    of = Artifact.calibration_id == Calibration.id
    owner: Row[str, int, str, int] | None = connection.execute(
        select(Calibration.name, Calibration.version, Artifact.role, Artifact.position)
        .join(Artifact, of)
        .where(Artifact.key == file.key)
        .order_by(Calibration.created_at)
    ).first()
    if owner is None:  # not while it is held
        return ArtifactDamaged(f"The stored file {file.key} is missing or damaged.")
    name = f"{owner.name}@{owner.version}"
    return ArtifactDamaged(
        f"The stored file {owner.role} {owner.position} of {name} is missing or damaged: "
        f"bring {file.key} back, or delete {name}."
    )
