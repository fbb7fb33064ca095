"""What a tenant keeps, and has to be done, held to its limits."""

from collections.abc import Iterable, Iterator
from uuid import UUID

from sqlalchemy.orm import Session

from service.errors import JobLimitReached, Quota, StorageLimitReached
from service.operations.tenants.limits import TenantLimits
from service.storage.artifact_rows import NewArtifact
from service.storage.database import Database
from service.storage.idempotency_keys import is_kept
from service.storage.tenant_usage import lock_usage, stored_bytes, unfinished_jobs

RETRY_SECONDS = 30


def before_upload(
    database: Database, tenant_id: UUID, limits: TenantLimits, *, queues: bool, key: str | None
) -> int:
    """Refuse a job that could not be queued now; return the bytes that are stored.

    What ``key`` has made before is only answered again. Without a limit for bytes none are told.

    Raises
    ------
    JobLimitReached
        If as many are unfinished as may be.
    """
    if not (limits.jobs or limits.stored_bytes):
        return 0
    with database.reading() as session:
        if limits.jobs and queues and not (key and is_kept(session, tenant_id, key)):
            _check_jobs(unfinished_jobs(session, tenant_id) + 1, limits)
        return stored_bytes(session, tenant_id) if limits.stored_bytes else 0


def hold_to_limits(session: Session, tenant_id: UUID, limits: TenantLimits) -> None:
    """Refuse what this transaction has added if it is more than may be; its last statement.

    Transactions of a tenant wait here for one another: no two together pass a limit that each of
    them keeps.

    Raises
    ------
    JobLimitReached, StorageLimitReached
        If more jobs are unfinished than may be, or more bytes are stored.
    """
    if not (limits.jobs or limits.stored_bytes):
        return
    session.flush()
    lock_usage(session, tenant_id)
    if limits.jobs:
        _check_jobs(unfinished_jobs(session, tenant_id), limits)
    if limits.stored_bytes:
        check_bytes(stored_bytes(session, tenant_id), limits)


def while_there_is_room(
    database: Database, tenant_id: UUID, limits: TenantLimits, files: Iterable[NewArtifact]
) -> Iterator[NewArtifact]:
    """Yield files as they are stored, until there is no more room for them.

    What a small upload unpacks to is noticed here, not when all of it is stored.

    Raises
    ------
    StorageLimitReached
        If they are more than may be stored.
    """
    total = 0
    if limits.stored_bytes:
        with database.reading() as session:
            total = stored_bytes(session, tenant_id)
    for file in files:
        total += file.size
        check_bytes(total, limits)
        yield file


def check_bytes(total: int, limits: TenantLimits) -> None:
    """Refuse more bytes than may be stored.

    Raises
    ------
    StorageLimitReached
        If these are.
    """
    if limits.stored_bytes and total > limits.stored_bytes:
        raise StorageLimitReached(
            f"This tenant may store {limits.stored_bytes} bytes, and this would make it {total} or "
            "more: delete calibrations, or ask for a higher limit.",
            retry_after=RETRY_SECONDS,
        )


def _check_jobs(count: int, limits: TenantLimits) -> None:
    if count > limits.jobs:
        raise JobLimitReached(
            f"This tenant may have {limits.jobs} jobs queued or running, and has: wait for one to "
            "end, or cancel one.",
            retry_after=RETRY_SECONDS,
            quota=Quota("jobs", limits.jobs),
        )
