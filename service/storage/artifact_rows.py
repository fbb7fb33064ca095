"""Rows of artifacts, which assign files to calibrations and evaluations."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Self, get_args
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import Artifact, ArtifactRole, Export
from service.errors import InvalidInput
from service.storage.artifact_keys import keys_of

MAX_LABEL_CHARACTERS = 255
# The shards of an uploaded set; only the job reads them.
SET_ROLES: tuple[ArtifactRole, ...] = ("calibration", "evaluation")
# An export names its calibration, so it is not shared.
# A fit makes the others itself.
SHARED_ROLES = tuple(role for role in get_args(ArtifactRole) if role not in {"export", "learned"})


@dataclass(frozen=True)
class NewArtifact:
    """A stored file for a calibration or an evaluation; ``label`` is the client's name for it."""

    role: ArtifactRole
    position: int
    label: str
    key: str
    sha256: str
    size: int

    @classmethod
    def of(cls, row: Artifact) -> Self:
        """Return the values of a row."""
        return cls(row.role, row.position, row.label, row.key, row.sha256, row.size)

    def row(
        self, tenant_id: UUID, calibration_id: UUID, evaluation_id: UUID | None = None
    ) -> Artifact:
        """Return its row.

        Raises
        ------
        InvalidInput
            If the label is too long, or has characters that cannot be shown.
        """
        if len(self.label) > MAX_LABEL_CHARACTERS or not self.label.isprintable():
            raise InvalidInput.at(
                self.role,
                f"expected a file name of at most {MAX_LABEL_CHARACTERS} printable characters",
            )
        return Artifact(
            tenant_id=tenant_id,
            calibration_id=calibration_id,
            evaluation_id=evaluation_id,
            **asdict(self),
        )


def parts_of(stored: Iterable[Artifact], role: ArtifactRole) -> list[Artifact]:
    """Return the files of a role, in order."""
    return sorted((file for file in stored if file.role == role), key=lambda file: file.position)


def shared_copies(
    session: Session,
    tenant_id: UUID,
    source_id: UUID,
    calibration_id: UUID,
    *,
    roles: Collection[ArtifactRole] = SHARED_ROLES,
) -> list[Artifact]:
    """Return rows that share the files of another calibration, without those of evaluations."""
    files = session.scalars(
        select(Artifact).where(
            Artifact.tenant_id == tenant_id,
            Artifact.calibration_id == source_id,
            Artifact.evaluation_id.is_(None),
            Artifact.role.in_(roles),
        )
    )
    return [NewArtifact.of(file).row(tenant_id, calibration_id) for file in files]


def delete_input_rows(
    session: Session, tenant_id: UUID, calibration_id: UUID, evaluation_id: UUID | None = None
) -> None:
    """Delete the rows of the sets that a job has read.

    Rows that a refit shares with its source belong to the source and stay.
    """
    session.execute(
        delete(Artifact).where(
            Artifact.tenant_id == tenant_id,  # which its index begins with
            Artifact.calibration_id == calibration_id,
            Artifact.evaluation_id.is_(None)
            if evaluation_id is None
            else Artifact.evaluation_id == evaluation_id,
            Artifact.role.in_(SET_ROLES),
            Artifact.key.startswith(f"{keys_of(calibration_id)}/"),
        )
    )


@dataclass(frozen=True)
class KeptExport:
    """The stored file of an export and how it was compared."""

    key: str
    sha256: str
    size: int
    parity: Export


class ExportRepository:
    """The exports of one tenant, within one session."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def find(self, calibration_id: UUID) -> KeptExport | None:
        """Return the export of a calibration, if it was made."""
        found = self._session.execute(
            select(Export, Artifact)
            .join(
                Artifact,
                (Artifact.tenant_id == Export.tenant_id)
                & (Artifact.calibration_id == Export.calibration_id),
            )
            .where(
                Export.tenant_id == self._tenant_id,
                Export.calibration_id == calibration_id,
                Artifact.role == "export",
                Artifact.evaluation_id.is_(None),
            )
        ).one_or_none()
        if found is None:
            return None
        parity, artifact = found
        return KeptExport(artifact.key, artifact.sha256, artifact.size, parity)

    def add(self, export: Export, artifact: NewArtifact) -> None:
        """Add an export, unless the calibration already has one or was deleted."""
        with suppress(IntegrityError), self._session.begin_nested():
            self._session.add(export)
            self._session.add(artifact.row(self._tenant_id, export.calibration_id))
