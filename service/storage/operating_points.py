"""Queries of one tenant's operating points."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from models import OperatingPoint


class OperatingPointRepository:
    """The decisions of one tenant, within one session."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def last(self, calibration_id: UUID) -> OperatingPoint | None:
        """Return the last decision of a calibration, if there is one."""
        return self._session.scalar(self._newest_first(calibration_id).limit(1))

    def active(self, calibration_ids: Collection[UUID]) -> Mapping[UUID, OperatingPoint]:
        """Return the active operating point of each calibration that has one."""
        rows = self._session.scalars(
            select(OperatingPoint)
            .where(
                OperatingPoint.tenant_id == self._tenant_id,
                OperatingPoint.calibration_id.in_(calibration_ids),
            )
            .order_by(OperatingPoint.number)
        )
        last = {row.calibration_id: row for row in rows}
        return {key: row for key, row in last.items() if row.threshold is not None}

    def history(self, calibration_id: UUID) -> Sequence[OperatingPoint]:
        """Return all decisions of a calibration, newest first."""
        return self._session.scalars(self._newest_first(calibration_id)).all()

    def add(self, row: OperatingPoint) -> OperatingPoint:
        """Add the next decision of a calibration, whose row the caller has locked."""
        last = self.last(row.calibration_id)
        row.tenant_id = self._tenant_id
        row.number = 1 if last is None else last.number + 1
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row)
        return row

    def _newest_first(self, calibration_id: UUID) -> Select[OperatingPoint]:
        return (
            select(OperatingPoint)
            .where(
                OperatingPoint.tenant_id == self._tenant_id,
                OperatingPoint.calibration_id == calibration_id,
            )
            .order_by(OperatingPoint.number.desc())
        )
