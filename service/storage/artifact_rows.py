"""The database's side of artifacts: which file belongs to what."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self, get_args
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from models import Artifact, ArtifactRole
from service.errors import InvalidInput
from service.storage.artifact_keys import keys_of

MAX_LABEL_CHARACTERS = 255
KEYS_PER_QUERY = 500
# A set that was uploaded, in shards: what a job reads and nobody after it.
SET_ROLES: tuple[ArtifactRole, ...] = ("calibration", "evaluation")
# An export is of one calibration, which it names.
SHARED_ROLES = tuple(role for role in get_args(ArtifactRole) if role != "export")


@dataclass(frozen=True)
class NewArtifact:
    """A stored file that is to belong to a calibration, or to an evaluation of it.

    ``label`` is the client's name for it.
    """

    role: ArtifactRole
    position: int
    label: str
    key: str
    sha256: str
    size: int

    @classmethod
    def of(cls, row: Artifact) -> Self:
        """Return what a row says, without the row."""
        return cls(row.role, row.position, row.label, row.key, row.sha256, row.size)

    def row(
        self, tenant_id: UUID, calibration_id: UUID, evaluation_id: UUID | None = None
    ) -> Artifact:
        """Return the row of it.

        Raises
        ------
        InvalidInput
            If the label is no file name: too long, or with characters that cannot be shown.
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
            role=self.role,
            position=self.position,
            label=self.label,
            key=self.key,
            sha256=self.sha256,
            size=self.size,
        )


def shared_copies(
    session: Session,
    tenant_id: UUID,
    source_id: UUID,
    calibration_id: UUID,
    *,
    roles: Collection[ArtifactRole] = SHARED_ROLES,
) -> list[Artifact]:
    """Return rows by which a calibration refers to the files of another, its evaluations' not."""
    files = session.scalars(
        select(Artifact).where(
            Artifact.tenant_id == tenant_id,
            Artifact.calibration_id == source_id,
            Artifact.evaluation_id.is_(None),
            Artifact.role.in_(roles),
        )
    )
    return [
        Artifact(
            tenant_id=tenant_id,
            calibration_id=calibration_id,
            role=file.role,
            position=file.position,
            label=file.label,
            key=file.key,
            sha256=file.sha256,
            size=file.size,
        )
        for file in files
    ]


def unshared_keys(
    session: Session, tenant_id: UUID, calibration_id: UUID, evaluation_id: UUID | None = None
) -> list[str]:
    """Return the keys that no other calibration refers to, and keep others from changing that.

    Those of the calibration and all evaluations of it, or of the one evaluation that is named:
    within a calibration each row has a key of its own.

    The rows of all who share a key are locked, in one order: of two calibrations that are deleted
    at once, the later one sees that it is the last. Who shares is read once more after that: a
    row that was added while the locks were waited for is seen then, even if the row that it was
    copied from is gone by now.
    """
    own = select(Artifact.key).where(
        Artifact.tenant_id == tenant_id, Artifact.calibration_id == calibration_id
    )
    if evaluation_id is not None:
        own = own.where(Artifact.evaluation_id == evaluation_id)
    sharing = select(Artifact.key, Artifact.calibration_id).where(
        Artifact.tenant_id == tenant_id, Artifact.key.in_(own)
    )
    session.execute(sharing.order_by(Artifact.key, Artifact.calibration_id).with_for_update()).all()
    rows = session.execute(sharing).all()
    shared = {row.key for row in rows if row.calibration_id != calibration_id}
    return sorted({row.key for row in rows} - shared)


def forget_sets(session: Session, calibration_id: UUID, evaluation_id: UUID | None = None) -> None:
    """Delete the rows of the sets that a job was given; their files are its own to remove.

    Those that a refit shares with its source, which kept them, were not given to it.
    """
    session.execute(
        delete(Artifact).where(
            Artifact.calibration_id == calibration_id,
            Artifact.evaluation_id.is_(None)
            if evaluation_id is None
            else Artifact.evaluation_id == evaluation_id,
            Artifact.role.in_(SET_ROLES),
            Artifact.key.startswith(f"{keys_of(calibration_id)}/"),
        )
    )


def named_keys(session: Session, tenant_id: UUID, keys: Sequence[str]) -> set[str]:
    """Return those of the keys that a row of the tenant names."""
    named: set[str] = set()
    for start in range(0, len(keys), KEYS_PER_QUERY):
        some = keys[start : start + KEYS_PER_QUERY]
        query = select(Artifact.key).where(Artifact.tenant_id == tenant_id, Artifact.key.in_(some))
        named.update(session.scalars(query))
    return named
