"""Calibrations of one tenant: every query of theirs, except those of the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVarTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, delete, or_, select
from sqlalchemy.orm import Session, selectinload

from models import (
    UNFINISHED,
    Calibration,
    CalibrationName,
    CalibrationStatus,
    database_now,
)
from service.errors import Conflict
from service.storage.artifact_rows import NewArtifact, unshared_keys
from service.storage.calibration_names import next_version, withdraw_promotion
from service.storage.cursors import Cursor, decode_cursor
from service.storage.references import Reference, parse_reference

__all__ = ["CalibrationRef", "CalibrationRepository", "NewArtifact"]

_Columns = TypeVarTuple("_Columns")


@dataclass(frozen=True)
class CalibrationRef:
    """Which calibration answers: what a caller is told of it."""

    id: UUID
    name: str
    version: int


class CalibrationRepository:
    """The calibrations of a tenant, within one session. Others' calibrations are not found."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def create(
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
            artifacts=[artifact.row(self._tenant_id, calibration_id) for artifact in artifacts],
        )
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
        return self._one(Reference(str(calibration_id), id=calibration_id))

    def find(self, reference: str) -> Calibration:
        """Return what an id, ``name@version`` or a name means, whatever its status.

        A name means its promoted version, else its newest that succeeded, else its newest.

        Raises
        ------
        NotFound
            If there is none.
        """
        return self._one(parse_reference(reference))

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
        _require_succeeded(CalibrationRef(row.id, row.name, row.version), row.status)
        return row

    def resolve(self, reference: str) -> CalibrationRef:
        """Return which calibration `find_ready` would, without reading the rest of it."""
        parsed = parse_reference(reference)
        columns = select(Calibration.id, Calibration.name, Calibration.version, Calibration.status)
        found = self._session.execute(self._matching(columns, parsed)).first()
        if found is None:
            raise parsed.not_found()
        ref = CalibrationRef(found.id, found.name, found.version)
        _require_succeeded(ref, found.status)
        return ref

    def page(
        self,
        *,
        cursor: str | None = None,
        limit: int,
        name: str | None = None,
        status: CalibrationStatus | None = None,
    ) -> tuple[Sequence[Calibration], str | None]:
        """Return up to ``limit`` calibrations, newest first, and the cursor of the next page.

        Raises
        ------
        InvalidInput
            If the cursor is none of ours.
        """
        query = select(Calibration).where(Calibration.tenant_id == self._tenant_id)
        if cursor is not None:
            query = query.where(_older_than(decode_cursor(cursor)))
        if name is not None:
            if not name.isprintable():
                return [], None
            query = query.where(Calibration.name == name)
        if status is not None:
            query = query.where(Calibration.status == status)
        query = query.order_by(Calibration.created_at.desc(), Calibration.id.desc())
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
        if row.status in ("succeeded", "failed"):
            raise Conflict(f"Calibration {row.name}@{row.version} has already {row.status}.")
        if row.status == "queued":
            row.status = "cancelled"
            row.finished_at = database_now()
        row.cancel_requested = True
        self._session.flush()
        self._session.refresh(row, ["finished_at"])
        return row

    def delete(self, calibration_id: UUID) -> list[str]:
        """Delete a finished calibration; return the artifact keys that nothing refers to any more.

        Its version is not given out again. A name that was promoted to it is promoted no longer.

        Raises
        ------
        NotFound
            If there is no such calibration.
        Conflict
            If it is queued or running.
        """
        row = self._locked(calibration_id)
        if row.status in UNFINISHED:
            raise Conflict(
                f"Calibration {row.name}@{row.version} is {row.status}: cancel it first."
            )
        keys = unshared_keys(self._session, self._tenant_id, calibration_id)
        withdraw_promotion(self._session, self._tenant_id, row.name, row.version)
        self._session.expunge(row)
        self._session.execute(delete(Calibration).where(Calibration.id == calibration_id))
        return keys

    def _one(self, reference: Reference) -> Calibration:
        query = select(Calibration).options(selectinload(Calibration.artifacts))
        row = self._session.scalars(self._matching(query, reference)).first()
        if row is None:
            raise reference.not_found()
        return row

    def _locked(self, calibration_id: UUID) -> Calibration:
        reference = Reference(str(calibration_id), id=calibration_id)
        query = self._matching(select(Calibration), reference).with_for_update()
        row = self._session.scalars(query.execution_options(populate_existing=True)).first()
        if row is None:
            raise reference.not_found()
        return row

    def _matching(self, query: Select[*_Columns], reference: Reference) -> Select[*_Columns]:
        """Narrow the query to what is referred to, the calibration that is meant first."""
        query = query.where(Calibration.tenant_id == self._tenant_id)
        if reference.id is not None:
            return query.where(Calibration.id == reference.id)
        query = query.where(Calibration.name == reference.name)
        if reference.version is not None:
            return query.where(Calibration.version == reference.version)
        promoted = select(CalibrationName.promoted_version).where(
            CalibrationName.tenant_id == self._tenant_id, CalibrationName.name == reference.name
        )
        preference = case(
            (Calibration.version == promoted.scalar_subquery(), 0),
            (Calibration.status == "succeeded", 1),
            else_=2,
        )
        return query.order_by(preference, Calibration.version.desc()).limit(1)


def _require_succeeded(ref: CalibrationRef, status: CalibrationStatus) -> None:
    if status != "succeeded":
        raise Conflict(f"Calibration {ref.name}@{ref.version} is not ready: it is {status}.")


def _older_than(cursor: Cursor) -> ColumnElement[bool]:
    return or_(
        Calibration.created_at < cursor.created_at,
        and_(Calibration.created_at == cursor.created_at, Calibration.id < cursor.id),
    )
