"""Quotas of a tenant: stored bytes and unfinished jobs."""

from collections.abc import Iterable, Iterator
from uuid import UUID

from sqlalchemy.orm import Session

from service.access.rate_limits import TenantLimits
from service.errors import JobLimitReached, Quota, StorageLimitReached
from service.storage.artifact_rows import NewArtifact
from service.storage.database import Database
from service.storage.idempotency_keys import is_committed
from service.storage.tenants import lock_usage, stored_bytes, unfinished_jobs

RETRY_SECONDS = 30


def before_upload(
    database: Database, tenant_id: UUID, limits: TenantLimits, *, in_progress: int, key: str | None
) -> int:
    """Refuse a job or dry run if the tenant has too many; return the bytes that it has stored.

    ``in_progress`` are the dry runs of this process and the new job or dry run. A repeated request
    with the idempotency key ``key`` starts no job. Without a storage limit the result is 0.

    Raises
    ------
    JobLimitReached
        If the tenant has too many unfinished jobs.
    """
    if not (limits.jobs or limits.stored_bytes):
        return 0
    with database.reading(tenant_id) as session:
        if limits.jobs and not (key and is_committed(session, tenant_id, key)):
            _check_jobs(unfinished_jobs(session, tenant_id) + in_progress, limits)
        return stored_bytes(session, tenant_id) if limits.stored_bytes else 0


def enforce_quotas(session: Session, tenant_id: UUID, limits: TenantLimits) -> None:
    """Refuse the transaction's additions beyond the quotas; call it last in the transaction.

    Transactions of a tenant wait here for one another, so that no two of them exceed a limit
    together.

    Raises
    ------
    JobLimitReached, StorageLimitReached
        If there are too many unfinished jobs or stored bytes.
    """
    if not (limits.jobs or limits.stored_bytes):
        return
    session.flush()
    lock_usage(session, tenant_id)
    if limits.jobs:
        _check_jobs(unfinished_jobs(session, tenant_id), limits)
    if limits.stored_bytes:
        check_bytes(stored_bytes(session, tenant_id), limits)


def enforce_storage_quota(
    database: Database, tenant_id: UUID, limits: TenantLimits, files: Iterable[NewArtifact]
) -> Iterator[NewArtifact]:
    """Yield files as they are stored, until the storage quota is used up.

    It stops a small upload that unpacks to too much data before all of it is stored.

    Raises
    ------
    StorageLimitReached
        If the files exceed the quota.
    """
    total = 0
    if limits.stored_bytes:
        with database.reading(tenant_id) as session:
            total = stored_bytes(session, tenant_id)
    for file in files:
        total += file.size
        check_bytes(total, limits)
        yield file


def check_bytes(total: int, limits: TenantLimits) -> None:
    """Refuse a total of bytes above the storage quota.

    Raises
    ------
    StorageLimitReached
        If the total is above the quota.
    """
    if limits.stored_bytes and total > limits.stored_bytes:
        raise StorageLimitReached(
            f"The storage limit of this tenant is {limits.stored_bytes} bytes; this would take it "
            f"to {total} or more. Delete calibrations, or request a higher limit.",
            retry_after=RETRY_SECONDS,
        )


def _check_jobs(count: int, limits: TenantLimits) -> None:
    if count > limits.jobs:
        raise JobLimitReached(
            f"The limit of {limits.jobs} queued or running jobs and dry runs is reached for this "
            "tenant. Wait for one to end, or cancel one.",
            retry_after=RETRY_SECONDS,
            quota=Quota("jobs", limits.jobs),
        )
