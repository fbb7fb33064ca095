"""Queries of calibrations: which one a reference means, and which come after a cursor."""

from typing import TypeVarTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, case, or_, select

from models import Calibration, CalibrationName
from service.storage.cursors import Cursor
from service.storage.references import Reference

_Columns = TypeVarTuple("_Columns")


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


def older_than(cursor: Cursor) -> ColumnElement[bool]:
    """Return what holds for the calibrations of the next page and all later ones."""
    return or_(
        Calibration.created_at < cursor.created_at,
        and_(Calibration.created_at == cursor.created_at, Calibration.id < cursor.id),
    )
