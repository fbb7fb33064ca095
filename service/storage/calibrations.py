"""Calibrations of one tenant: every query of theirs, except those of the queue."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from models import Calibration, CalibrationName, JobStatus
from service.storage.artifact_rows import NewArtifact, forget_sets, shared_copies, unshared_keys
from service.storage.calibration_names import next_version, promote, withdraw_promotion
from service.storage.calibration_queries import LOCKED, REFS, WHOLE, WITHOUT_FILES, listed, meaning
from service.storage.cursors import Cursor, decode_cursor
from service.storage.evaluations import require_evaluations_finished
from service.storage.job_states import request_end, require_finished, require_succeeded
from service.storage.references import CalibrationRef, Reference, parse_reference

__all__ = ["CalibrationRef", "CalibrationRepository", "NewArtifact"]


class CalibrationRepository:
    """The calibrations of a tenant, within one session. Others' calibrations are not found."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def create(  # noqa: PLR0913 - the row has that many columns
        self,
        calibration_id: UUID,
        *,
        name: str,
        config: Mapping[str, object],
        data: Mapping[str, object],
        onnx_model: Mapping[str, object] | None,
        versions: Mapping[str, str],
        artifacts: Sequence[NewArtifact],
        warnings: Sequence[str],
        findings: Sequence[Mapping[str, object]] = (),
    ) -> Calibration:
        """Queue a calibration under the next version of its name."""
        row = Calibration(
            id=calibration_id,
            tenant_id=self._tenant_id,
            name=name,
            version=next_version(self._session, self._tenant_id, name),
            config=dict(config),
            data=dict(data),
            onnx_model=None if onnx_model is None else dict(onnx_model),
            versions=dict(versions),
            warnings=list(warnings),
            findings=[dict(finding) for finding in findings],
            artifacts=[artifact.row(self._tenant_id, calibration_id) for artifact in artifacts],
        )
        return self._add(row)

    def get(self, calibration_id: UUID) -> Calibration:
        """Return the calibration of this id.

        Raises
        ------
        NotFound
            If the tenant has none.
        """
        return self._one(Reference(str(calibration_id), id=calibration_id))

    def find(self, reference: str, *, with_files: bool = True) -> Calibration:
        """Return what an id, ``name@version`` or a name means, whatever its status.

        A name means its promoted version, else its newest that succeeded, else its newest. Its
        ``artifacts`` can be read only if it was found with its files.

        Raises
        ------
        NotFound
            If there is none.
        """
        return self._one(parse_reference(reference), with_files=with_files)

    def find_ready(self, reference: str) -> Calibration:
        """Return what the reference means, provided that it succeeded.

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
        parsed = parse_reference(reference)
        # Every request asks this: past the session, whose own share is a quarter of the time.
        connection = self._session.connection()
        found = connection.execute(REFS[parsed.kind], meaning(self._tenant_id, parsed)).first()
        if found is None:
            raise parsed.not_found()
        ref = CalibrationRef(found.id, found.name, found.version)
        require_succeeded(found.status, _title(ref.name, ref.version))
        return ref

    def page(
        self,
        *,
        cursor: str | None = None,
        limit: int,
        name: str | None = None,
        status: JobStatus | None = None,
    ) -> tuple[Sequence[Calibration], str | None]:
        """Return up to ``limit`` calibrations, newest first, and the cursor of the next page.

        What a fit found out about the model as a whole is long, and cannot be read from these rows.

        Raises
        ------
        InvalidInput
            If the cursor is none of ours.
        """
        start = None if cursor is None else decode_cursor(cursor)
        query = listed(self._tenant_id, after=start, name=name, status=status)
        rows = self._session.scalars(query.limit(limit + 1)).all()
        if len(rows) <= limit:
            return rows, None
        last = rows[limit - 1]
        return rows[:limit], Cursor(last.created_at, last.id).encode()

    def request_cancel(self, calibration_id: UUID) -> Calibration:
        """Cancel what is queued; ask the owner of what is running to stop.

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
            forget_sets(self._session, row.id)
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
        """Return which version each of the names was promoted to; those that were to none lack."""
        found = self._session.execute(
            select(CalibrationName.name, CalibrationName.promoted_version).where(
                CalibrationName.tenant_id == self._tenant_id,
                CalibrationName.name.in_(set(names)),
                CalibrationName.promoted_version.is_not(None),
            )
        )
        return {row.name: row.promoted_version for row in found}

    def create_refit(
        self,
        source_id: UUID,
        new_id: UUID,
        *,
        config: Mapping[str, object],
        warnings: Sequence[str],
        findings: Sequence[Mapping[str, object]] = (),
    ) -> Calibration:
        """Queue a calibration that fits the records of another anew: the next version of its name.

        It refers to the same files, its records among them, so that it outlives the other.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it has not succeeded.
        """
        source = self.lock_ready(source_id)
        row = Calibration(
            id=new_id,
            tenant_id=self._tenant_id,
            name=source.name,
            version=next_version(self._session, self._tenant_id, source.name),
            refit_of=source_id,
            config=dict(config),
            data=source.data,
            onnx_model=source.onnx_model,
            versions=source.versions,
            warnings=list(warnings),
            findings=[dict(finding) for finding in findings],
            artifacts=shared_copies(self._session, self._tenant_id, source_id, new_id),
        )
        return self._add(row)

    def delete(self, calibration_id: UUID) -> list[str]:
        """Delete a finished calibration; return the artifact keys that nothing refers to any more.

        Its version is not given out again. A name that was promoted to it is promoted no longer.

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
        keys = unshared_keys(self._session, self._tenant_id, calibration_id)
        withdraw_promotion(self._session, self._tenant_id, row.name, row.version)
        self._session.expunge(row)
        self._session.execute(delete(Calibration).where(Calibration.id == calibration_id))
        return keys

    def _add(self, row: Calibration) -> Calibration:
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row, ["created_at"])
        return row

    def _one(self, reference: Reference, *, with_files: bool = True) -> Calibration:
        values = meaning(self._tenant_id, reference)
        queries = WHOLE if with_files else WITHOUT_FILES
        row = self._session.scalars(queries[reference.kind], values).first()
        if row is None:
            raise reference.not_found()
        return row

    def _locked(self, calibration_id: UUID) -> Calibration:
        reference = Reference(str(calibration_id), id=calibration_id)
        row = self._session.scalars(LOCKED, meaning(self._tenant_id, reference)).first()
        if row is None:
            raise reference.not_found()
        return row


def _title(name: str, version: int) -> str:
    return f"Calibration {name}@{version}"
