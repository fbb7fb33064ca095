"""Names of calibrations: which version comes next, and which one a name means."""

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from models import CalibrationName


def next_version(session: Session, tenant_id: UUID, name: str) -> int:
    """Return a version of the name that was never given out before.

    The name's row stays locked until the transaction ends, so nobody else counts meanwhile; what
    it holds is read in a second statement because older SQLite knows no RETURNING.
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
