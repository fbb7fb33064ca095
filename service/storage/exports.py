"""Exports of one tenant's calibrations: every query of theirs."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import Artifact, Export
from service.storage.artifact_rows import NewArtifact


@dataclass(frozen=True)
class KeptExport:
    """The stored file of an export and how it was compared."""

    key: str
    sha256: str
    size: int
    parity: Export


class ExportRepository:
    """The exports of a tenant, within one session. Others' exports are not found."""

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

    def add(self, export: Export, artifact: NewArtifact) -> bool:
        """Keep an export; False if the calibration has one by now, or is there no more."""
        try:
            with self._session.begin_nested():
                self._session.add(export)
                self._session.add(artifact.row(self._tenant_id, export.calibration_id))
        except IntegrityError:
            return False
        return True
