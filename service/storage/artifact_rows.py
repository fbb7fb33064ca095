"""The database's side of artifacts: which file belongs to which calibration."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import Artifact, ArtifactRole
from service.errors import InvalidInput

MAX_LABEL_CHARACTERS = 255


@dataclass(frozen=True)
class NewArtifact:
    """A stored file that is to belong to a calibration; ``label`` is the client's name for it."""

    role: ArtifactRole
    position: int
    label: str
    key: str
    sha256: str
    size: int

    def row(self, tenant_id: UUID, calibration_id: UUID) -> Artifact:
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
            role=self.role,
            position=self.position,
            label=self.label,
            key=self.key,
            sha256=self.sha256,
            size=self.size,
        )


def unshared_keys(session: Session, tenant_id: UUID, calibration_id: UUID) -> list[str]:
    """Return the keys that no other calibration refers to, and keep others from changing that.

    The rows of all who share a key are locked, in one order: of two calibrations that are deleted
    at once, the later one sees that it is the last.
    """
    own = select(Artifact.key).where(
        Artifact.tenant_id == tenant_id, Artifact.calibration_id == calibration_id
    )
    sharing = session.execute(
        select(Artifact.key, Artifact.calibration_id)
        .where(Artifact.tenant_id == tenant_id, Artifact.key.in_(own))
        .order_by(Artifact.key, Artifact.calibration_id, Artifact.role, Artifact.position)
        .with_for_update()
    ).all()
    shared = {row.key for row in sharing if row.calibration_id != calibration_id}
    return sorted({row.key for row in sharing} - shared)
