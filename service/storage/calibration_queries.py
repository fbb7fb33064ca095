"""Queries of calibrations: which one a reference means, and those that a page lists."""

from typing import TypeVarTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, false, or_, select
from sqlalchemy.orm import defer

from models import Calibration, CalibrationName, JobStatus
from service.storage.cursors import Cursor
from service.storage.references import Reference

_Columns = TypeVarTuple("_Columns")
_LONG = (
    Calibration.model_scores,
    Calibration.verdicts,
    Calibration.baselines,
    Calibration.mislabelled,
)


def meant(query: Select[*_Columns], tenant_id: UUID, reference: Reference) -> Select[*_Columns]:
    """Narrow the query to what is referred to, the calibration that is meant first."""
    query = query.where(Calibration.tenant_id == tenant_id)
    if reference.id is not None:
        return query.where(Calibration.id == reference.id)
    query = query.where(Calibration.name == reference.name)
    if reference.version is not None:
        return query.where(Calibration.version == reference.version)
    promoted = select(CalibrationName.promoted_version).where(
        CalibrationName.tenant_id == tenant_id, CalibrationName.name == reference.name
    )
    preference = case(
        (Calibration.version == promoted.scalar_subquery(), 0),
        (Calibration.status == "succeeded", 1),
        else_=2,
    )
    return query.order_by(preference, Calibration.version.desc()).limit(1)


def listed(
    tenant_id: UUID, *, after: Cursor | None, name: str | None, status: JobStatus | None
) -> Select[Calibration]:
    """Return the query of a tenant's calibrations, newest first, without their long columns."""
    query = (
        select(Calibration)
        .where(Calibration.tenant_id == tenant_id)
        .order_by(Calibration.created_at.desc(), Calibration.id.desc())
        .options(*(defer(column, raiseload=True) for column in _LONG))
    )
    if after is not None:
        query = query.where(_older_than(after))
    if name is not None:
        # A database refuses some texts that no calibration is called.
        query = query.where(Calibration.name == name if name.isprintable() else false())
    return query if status is None else query.where(Calibration.status == status)


def _older_than(cursor: Cursor) -> ColumnElement[bool]:
    return or_(
        Calibration.created_at < cursor.created_at,
        and_(Calibration.created_at == cursor.created_at, Calibration.id < cursor.id),
    )
