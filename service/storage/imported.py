"""Calibrations that are made from a table: finished at once, beside one that has the model."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from models import Artifact, ArtifactRole, Base, Calibration, database_now
from service.storage.artifact_rows import shared_copies
from service.storage.calibration_names import next_version

MODEL_ROLES: tuple[ArtifactRole, ...] = ("model", "model_data")


def calibrations_of_model(session: Session, tenant_id: UUID, sha256: str) -> Iterator[Calibration]:
    """Yield the tenant's succeeded calibrations of an ONNX model, the newest first.

    Those that were yielded stay until the transaction ends.
    """
    of_model = (
        select(Artifact.calibration_id)
        .where(Artifact.tenant_id == tenant_id, Artifact.evaluation_id.is_(None))
        .where(Artifact.role == "model", Artifact.position == 0, Artifact.sha256 == sha256)
    )
    ids = session.scalars(
        select(Calibration.id)
        .where(Calibration.tenant_id == tenant_id, Calibration.status == "succeeded")
        .where(Calibration.id.in_(of_model))
        .order_by(Calibration.created_at.desc(), Calibration.id.desc())
    ).all()
    for calibration_id in ids:
        query = select(Calibration).where(Calibration.id == calibration_id)
        row = session.scalars(
            query.options(selectinload(Calibration.artifacts)).with_for_update()
        ).one_or_none()
        # None: it was deleted between the two statements.
        if row is not None:
            yield row


def create_imported(  # noqa: PLR0913 - the row has that many columns
    session: Session,
    tenant_id: UUID,
    calibration_id: UUID,
    *,
    name: str,
    source: Calibration | None,
    config: Mapping[str, object],
    data: Mapping[str, object],
    versions: Mapping[str, str],
    warnings: Sequence[str],
    accuracy: Mapping[str, float],
    serve: Mapping[str, str],
    rows: Sequence[Base],
) -> None:
    """Add a calibration that has succeeded, under the next version of its name.

    It refers to the files of the model of ``source``, which outlive that, and to nothing else of
    it; ``source`` must be locked. ``rows`` are its tables.
    """
    artifacts = (
        []
        if source is None
        else shared_copies(session, tenant_id, source.id, calibration_id, roles=MODEL_ROLES)
    )
    session.add(
        Calibration(
            id=calibration_id,
            tenant_id=tenant_id,
            name=name,
            version=next_version(session, tenant_id, name),
            status="succeeded",
            finished_at=database_now(),
            config=dict(config),
            data=dict(data),
            onnx_model=None if source is None else source.onnx_model,
            versions=dict(versions),
            warnings=list(warnings),
            accuracy=dict(accuracy),
            serve=dict(serve),
            artifacts=artifacts,
        )
    )
    session.flush()
    session.add_all(rows)
