"""Queries of calibrations by reference, and for pages of a list."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args
from uuid import UUID

from sqlalchemy import Select, bindparam, case, false, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, defer

from models import Calibration, CalibrationName, JobStatus
from service.errors import NotFound, did_you_mean, shown

_ID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_NAME = re.compile(r"(?P<name>[^@]{1,100})(?:@(?P<version>[1-9][0-9]{0,8}))?")


ReferenceKind: TypeAlias = Literal["id", "version", "name"]


@dataclass(frozen=True)
class CalibrationRef:
    """The calibration that a response names."""

    id: UUID
    name: str
    version: int


@dataclass(frozen=True)
class Reference:
    """An id, a name with a version, or only a name."""

    text: str
    id: UUID | None = None
    name: str | None = None
    version: int | None = None

    @property
    def kind(self) -> ReferenceKind:
        """Which of the three it is."""
        if self.id is not None:
            return "id"
        return "name" if self.version is None else "version"

    def not_found(self, names: Iterable[str] = ()) -> NotFound:
        """Return the error that there is no such calibration; it says the nearest of ``names``."""
        nearest = "" if self.name is None else did_you_mean(self.name, names)
        return NotFound.at("calibration", f"there is no calibration {shown(self.text)}{nearest}")


def parse_reference(text: str) -> Reference:
    """Tell which kind of reference a text is.

    Raises
    ------
    NotFound
        If it is not a reference. The database is not asked: it does not accept every text.
    """
    if _ID.fullmatch(text):
        return Reference(text, id=UUID(text))
    found = _NAME.fullmatch(text)
    if found is None or not text.isprintable():
        raise Reference(text).not_found()
    version = found["version"]
    return Reference(text, name=found["name"], version=None if version is None else int(version))


def next_version(session: Session, tenant_id: UUID, name: str) -> int:
    """Return the next version of a name, which was never used before.

    The name's row stays locked until the transaction ends, so that versions are unique. A second
    statement reads the row because older SQLite has no RETURNING.
    """
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    insert = sqlite.insert if on_sqlite else postgresql.insert
    session.execute(
        insert(CalibrationName)
        .values(tenant_id=tenant_id, name=name, last_version=1)
        .on_conflict_do_update(
            index_elements=[CalibrationName.tenant_id, CalibrationName.name],
            set_={"last_version": CalibrationName.last_version + 1},
        )
    )
    return session.scalars(
        select(CalibrationName.last_version).where(
            CalibrationName.tenant_id == tenant_id, CalibrationName.name == name
        )
    ).one()


def promote(session: Session, tenant_id: UUID, name: str, version: int) -> None:
    """Let the name mean this version."""
    session.execute(
        update(CalibrationName)
        .where(CalibrationName.tenant_id == tenant_id, CalibrationName.name == name)
        .values(promoted_version=version)
    )


def withdraw_promotion(session: Session, tenant_id: UUID, name: str, version: int) -> None:
    """Let the name mean its newest version again, if it was promoted to this one."""
    session.execute(
        update(CalibrationName)
        .where(
            CalibrationName.tenant_id == tenant_id,
            CalibrationName.name == name,
            CalibrationName.promoted_version == version,
        )
        .values(promoted_version=None)
    )


_TENANT_ID = bindparam("tenant_id", type_=Calibration.tenant_id.type)
_NAME_PARAMETER = bindparam("name", type_=Calibration.name.type)
_LONG = (
    Calibration.model_scores,
    Calibration.verdicts,
    Calibration.baselines,
    Calibration.oracles,
    Calibration.mislabelled,
)


def _matching(kind: ReferenceKind) -> Select[UUID, str, int, JobStatus]:
    """Return the query for references of this kind; its first row is the calibration meant."""
    query = select(Calibration.id, Calibration.name, Calibration.version, Calibration.status).where(
        Calibration.tenant_id == _TENANT_ID
    )
    if kind == "id":
        return query.where(Calibration.id == bindparam("id"))
    query = query.where(Calibration.name == _NAME_PARAMETER)
    if kind == "version":
        return query.where(Calibration.version == bindparam("version"))
    promoted = select(CalibrationName.promoted_version).where(
        CalibrationName.tenant_id == _TENANT_ID, CalibrationName.name == _NAME_PARAMETER
    )
    preference = case(
        (Calibration.version == promoted.scalar_subquery(), 0),
        (Calibration.status == "succeeded", 1),
        else_=2,
    )
    return query.order_by(preference, Calibration.version.desc()).limit(1)


# Building a query takes longer than running it: each is built once, here.
REFS: Mapping[ReferenceKind, Select[UUID, str, int, JobStatus]] = {
    kind: _matching(kind) for kind in get_args(ReferenceKind)
}


def reference_params(tenant_id: UUID, reference: Reference) -> dict[str, object]:
    """Return the parameters of `REFS`."""
    named = {"id": reference.id, "name": reference.name, "version": reference.version}
    return {"tenant_id": tenant_id} | {key: one for key, one in named.items() if one is not None}


# Calibrations whose names are compared with one that does not exist.
MOST_COMPARED = 100


def newest_names(tenant_id: UUID) -> Select[str]:
    """Return the query of the names of a tenant's newest calibrations."""
    newest = (Calibration.created_at.desc(), Calibration.id.desc())
    return (
        select(Calibration.name)
        .where(Calibration.tenant_id == tenant_id)
        .order_by(*newest)
        .limit(MOST_COMPARED)
    )


def listed(tenant_id: UUID, *, name: str | None, status: JobStatus | None) -> Select[Calibration]:
    """Return the query of a tenant's calibrations, without their long columns."""
    query = (
        select(Calibration)
        .where(Calibration.tenant_id == tenant_id)
        .options(*(defer(column, raiseload=True) for column in _LONG))
    )
    if name is not None:
        # Databases refuse some texts, which no name contains.
        query = query.where(Calibration.name == name if name.isprintable() else false())
    return query if status is None else query.where(Calibration.status == status)
