"""Queries of calibrations: which one a reference means, and those that a page lists."""

from collections.abc import Mapping
from typing import TypeVarTuple, get_args
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, false, or_, select
from sqlalchemy.orm import defer, selectinload

from models import Calibration, CalibrationName, JobStatus
from service.storage.cursors import Cursor
from service.storage.references import Reference, ReferenceKind

_Columns = TypeVarTuple("_Columns")
_TENANT_ID = bindparam("tenant_id", type_=Calibration.tenant_id.type)
_NAME = bindparam("name", type_=Calibration.name.type)
_LONG = (
    Calibration.model_scores,
    Calibration.verdicts,
    Calibration.baselines,
    Calibration.mislabelled,
)


def _meant(query: Select[*_Columns], kind: ReferenceKind) -> Select[*_Columns]:
    """Narrow the query to what a reference of this kind means, the calibration meant first.

    Which reference it is, `meaning` says when the query runs.
    """
    query = query.where(Calibration.tenant_id == _TENANT_ID)
    if kind == "id":
        return query.where(Calibration.id == bindparam("id"))
    query = query.where(Calibration.name == _NAME)
    if kind == "version":
        return query.where(Calibration.version == bindparam("version"))
    promoted = select(CalibrationName.promoted_version).where(
        CalibrationName.tenant_id == _TENANT_ID, CalibrationName.name == _NAME
    )
    preference = case(
        (Calibration.version == promoted.scalar_subquery(), 0),
        (Calibration.status == "succeeded", 1),
        else_=2,
    )
    return query.order_by(preference, Calibration.version.desc()).limit(1)


def _by_kind(query: Select[*_Columns]) -> Mapping[ReferenceKind, Select[*_Columns]]:
    """Return the query narrowed to each kind of reference."""
    return {kind: _meant(query, kind) for kind in get_args(ReferenceKind)}


# Building a query takes longer than running it: each is built once, here.
REFS = _by_kind(select(Calibration.id, Calibration.name, Calibration.version, Calibration.status))
WHOLE = _by_kind(select(Calibration).options(selectinload(Calibration.artifacts)))
# A large set has thousands of files.
WITHOUT_FILES = _by_kind(select(Calibration))
LOCKED = (
    _meant(select(Calibration), "id").with_for_update().execution_options(populate_existing=True)
)


def meaning(tenant_id: UUID, reference: Reference) -> dict[str, object]:
    """Return the parameters of `REFS`, `WHOLE`, `WITHOUT_FILES` and `LOCKED`."""
    named = {"id": reference.id, "name": reference.name, "version": reference.version}
    return {"tenant_id": tenant_id} | {key: one for key, one in named.items() if one is not None}


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
