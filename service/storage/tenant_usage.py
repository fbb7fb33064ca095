"""What a tenant has stored, and has to be done."""

from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models import UNFINISHED, Artifact, Calibration, Evaluation, Tenant


def lock_usage(session: Session, tenant_id: UUID) -> None:
    """Let nobody else of the tenant pass here until the transaction ends.

    What is counted afterwards holds all that they have committed. On SQLite one transaction writes
    at a time. It is taken last of all locks, so that whoever waits for it holds nothing that its
    owner still wants; rows that refer to a tenant are not kept waiting.
    """
    session.execute(
        select(Tenant.id).where(Tenant.id == tenant_id).with_for_update(key_share=True)
    ).one()


def stored_bytes(session: Session, tenant_id: UUID) -> int:
    """Return the bytes of all files of a tenant, those that calibrations share once."""
    files = select(Artifact.key, Artifact.size).where(Artifact.tenant_id == tenant_id).distinct()
    total = session.scalar(select(func.sum(files.subquery().c.size)))
    return int(total or 0)


def unfinished_jobs(session: Session, tenant_id: UUID) -> int:
    """Return how many calibrations and evaluations of a tenant are queued or running."""
    return sum(
        session.scalar(
            select(func.count())
            .select_from(table)
            .where(table.status.in_(UNFINISHED), table.tenant_id == tenant_id)
        )
        or 0
        for table in (Calibration, Evaluation)
    )
