"""Queries of one tenant's calibrations, except those of the queue."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session, selectinload

from models import (
    Artifact,
    ArtifactRole,
    Base,
    Calibration,
    CalibrationName,
    JobStatus,
    database_now,
)
from service.storage.artifact_rows import NewArtifact, delete_input_rows, shared_copies
from service.storage.audit_log import rows_of_page
from service.storage.calibration_queries import (
    REFS,
    CalibrationRef,
    Reference,
    listed,
    newest_names,
    next_version,
    parse_reference,
    promote,
    reference_params,
    withdraw_promotion,
)
from service.storage.evaluations import require_evaluations_finished
from service.storage.job_states import request_end, require_finished, require_succeeded

__all__ = ["CalibrationRef", "CalibrationRepository", "NewArtifact"]

_FILES = (selectinload(Calibration.artifacts),)


class CalibrationRepository:
    """The calibrations of one tenant, within one session."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def add(self, row: Calibration, artifacts: Sequence[NewArtifact] = ()) -> Calibration:
        """Add a calibration as the next version of its name, queued unless its status is given."""
        row.tenant_id = self._tenant_id
        row.version = next_version(self._session, self._tenant_id, row.name)
        row.artifacts += [artifact.row(self._tenant_id, row.id) for artifact in artifacts]
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row, ["created_at"])
        return row

    def get(self, calibration_id: UUID) -> Calibration:
        """Return the calibration of this id.

        Raises
        ------
        NotFound
            If the tenant has none.
        """
        return self._one(calibration_id, select(Calibration).options(*_FILES))

    def find(self, reference: str, *, with_files: bool = True) -> Calibration:
        """Return the calibration of an id, ``name@version`` or name, whatever its status.

        A name means its promoted version, else its newest that succeeded, else its newest. Its
        ``artifacts`` can be read only if it was found with its files.

        Raises
        ------
        NotFound
            If there is none.
        """
        calibration_id = self._meant(reference)[0].id
        # A large set has thousands of files.
        return self._one(calibration_id, select(Calibration).options(*_FILES if with_files else ()))

    def find_ready(self, reference: str) -> Calibration:
        """Return the calibration of a reference if it succeeded.

        Raises
        ------
        NotFound
            If there is none.
        Conflict
            If it has not succeeded.
        """
        row = self.find(reference)
        require_succeeded(row.status, _title(row.name, row.version))
        return row

    def lock_ready(self, calibration_id: UUID) -> Calibration:
        """Return a calibration that succeeded, locked until the end of the transaction.

        Raises
        ------
        NotFound
            If there is none.
        Conflict
            If it has not succeeded.
        """
        row = self._locked(calibration_id)
        require_succeeded(row.status, _title(row.name, row.version))
        return row

    def resolve(self, reference: str) -> CalibrationRef:
        """Return which calibration `find_ready` would, without reading the rest of it."""
        ref, status = self._meant(reference)
        require_succeeded(status, _title(ref.name, ref.version))
        return ref

    def _meant(self, reference: str) -> tuple[CalibrationRef, JobStatus]:
        parsed = parse_reference(reference)
        params = reference_params(self._tenant_id, parsed)
        # Each prediction asks this. The session would add a quarter of the time.
        found = self._session.connection().execute(REFS[parsed.kind], params).first()
        if found is None:
            names = (
                () if parsed.name is None else self._session.scalars(newest_names(self._tenant_id))
            )
            raise parsed.not_found(set(names))
        return CalibrationRef(found.id, found.name, found.version), found.status

    def states(
        self, *, name: str | None = None, status: JobStatus | None = None
    ) -> list[tuple[CalibrationRef, JobStatus]]:
        """Return every calibration with its status, sorted by name and version."""
        query = select(
            Calibration.id, Calibration.name, Calibration.version, Calibration.status
        ).where(Calibration.tenant_id == self._tenant_id)
        if name is not None:
            query = query.where(Calibration.name == name)
        if status is not None:
            query = query.where(Calibration.status == status)
        # Sorted here, since databases sort names differently.
        rows = sorted(self._session.execute(query), key=lambda row: (row.name, row.version))
        return [(CalibrationRef(row.id, row.name, row.version), row.status) for row in rows]

    def page(
        self,
        *,
        cursor: str | None = None,
        limit: int,
        name: str | None = None,
        status: JobStatus | None = None,
    ) -> tuple[Sequence[Calibration], str | None]:
        """Return up to ``limit`` calibrations, newest first, and the cursor of the next page.

        The long results of a fit about the whole model cannot be read from these rows.

        Raises
        ------
        InvalidInput
            If the cursor is invalid.
        """
        query = listed(self._tenant_id, name=name, status=status)
        return rows_of_page(self._session, query, Calibration, cursor=cursor, limit=limit)

    def request_cancel(self, calibration_id: UUID) -> Calibration:
        """Cancel a queued calibration, or request a running one to stop.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it has finished otherwise.
        """
        row = self._locked(calibration_id)
        request_end(self._session, row, _title(row.name, row.version))
        if row.status == "cancelled":
            delete_input_rows(self._session, self._tenant_id, row.id)
        return row

    def promote(self, calibration_id: UUID) -> Calibration:
        """Let the name mean this version from now on, until another is promoted.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it has not succeeded.
        """
        row = self.lock_ready(calibration_id)
        promote(self._session, self._tenant_id, row.name, row.version)
        return row

    def promoted_versions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the promoted versions by name, without names that have none."""
        found = self._session.execute(
            select(CalibrationName.name, CalibrationName.promoted_version).where(
                CalibrationName.tenant_id == self._tenant_id,
                CalibrationName.name.in_(set(names)),
                CalibrationName.promoted_version.is_not(None),
            )
        )
        return {row.name: row.promoted_version for row in found}

    def add_refit(self, source_id: UUID, row: Calibration) -> Calibration:
        """Queue a refit of a calibration from its records, as the next version of its name.

        It refers to the same files, so that the source may be deleted.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it has not succeeded.
        """
        source = self.lock_ready(source_id)
        row.name, row.refit_of = source.name, source_id
        row.data, row.onnx_model, row.versions = source.data, source.onnx_model, source.versions
        row.artifacts = shared_copies(self._session, self._tenant_id, source_id, row.id)
        return self.add(row)

    def delete(self, calibration_id: UUID) -> None:
        """Delete a finished calibration; the sweeper deletes its files later.

        Its version is not used again. If it was promoted, its name loses the promotion.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it is queued or running, or an evaluation of it is.
        """
        row = self._locked(calibration_id)
        title = _title(row.name, row.version)
        require_finished(row.status, title)
        require_evaluations_finished(self._session, self._tenant_id, calibration_id, title)
        withdraw_promotion(self._session, self._tenant_id, row.name, row.version)
        self._session.expunge(row)
        self._session.execute(delete(Calibration).where(Calibration.id == calibration_id))

    def _one(self, calibration_id: UUID, query: Select[Calibration]) -> Calibration:
        of_tenant = Calibration.tenant_id == self._tenant_id
        row = self._session.scalars(
            query.where(of_tenant, Calibration.id == calibration_id)
        ).first()
        if row is None:
            raise Reference(str(calibration_id)).not_found()
        return row

    def _locked(self, calibration_id: UUID) -> Calibration:
        query = select(Calibration).with_for_update().execution_options(populate_existing=True)
        return self._one(calibration_id, query)


def _title(name: str, version: int) -> str:
    return f"Calibration {name}@{version}"


MODEL_ROLES: tuple[ArtifactRole, ...] = ("model", "model_data")


def calibrations_of_model(session: Session, tenant_id: UUID, sha256: str) -> Iterator[Calibration]:
    """Yield the tenant's succeeded calibrations of an ONNX model, the newest first."""
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
        row = session.scalars(query.options(selectinload(Calibration.artifacts))).one_or_none()
        # None: it was deleted between the two statements.
        if row is not None:
            yield row


def add_imported(
    session: Session,
    tenant_id: UUID,
    row: Calibration,
    *,
    source: Calibration | None,
    tables: Sequence[Base],
) -> None:
    """Add a calibration that has succeeded, under the next version of its name, and its tables.

    It shares the model's files of ``source``, which must be locked, and nothing else.
    """
    row.status, row.finished_at = "succeeded", database_now()
    if source is not None:
        row.onnx_model = source.onnx_model
        row.artifacts = shared_copies(session, tenant_id, source.id, row.id, roles=MODEL_ROLES)
    CalibrationRepository(session, tenant_id).add(row)
    session.add_all(tables)
