"""Acceptance of a change: its context, and one transaction for all that is stored of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from service.access.audit_log import AuditEvent, evaluation_subject, record_success
from service.access.quotas import enforce_quotas
from service.access.rate_limits import NO_LIMITS, TenantLimits
from service.errors import OutcomeUnknown
from service.storage.artifact_store import ArtifactStore
from service.storage.idempotency_keys import KeyedRequest, keep_key
from service.workspace import Workspace


@dataclass(frozen=True)
class CallContext:
    """What a call needs: the workspace, the tenant, its limits and what is recorded.

    ``event`` is None for what the audit log does not record: reads, and changes by the service.
    ``request`` is None without an idempotency key.
    """

    workspace: Workspace
    tenant_id: UUID
    limits: TenantLimits = NO_LIMITS
    event: AuditEvent | None = None
    request: KeyedRequest | None = None


@contextmanager
def accepted(
    ctx: CallContext,
    calibration_id: UUID,
    *,
    evaluation: str | None = None,
    invalidates_cache: bool = False,
) -> Iterator[Session]:
    """Open the transaction that adds a calibration, or an evaluation of one; announce the job.

    At its end the transaction records the change, stores the idempotency key and enforces quotas.

    Raises
    ------
    JobLimitReached, StorageLimitReached
        If the quotas do not allow it.
    OutcomeUnknown
        If the connection broke during the commit.
    """
    with ctx.workspace.database.session(
        ctx.tenant_id, invalidates_cache=invalidates_cache
    ) as session:
        yield session
        record_success(ctx.event, session, _subject(calibration_id, evaluation))
        keep_key(session, ctx.tenant_id, ctx.request, calibration_id)
        enforce_quotas(session, ctx.tenant_id, ctx.limits)
    ctx.workspace.job_available.release()


def _subject(calibration_id: UUID, evaluation: str | None) -> str:
    if evaluation is None:
        return str(calibration_id)
    return evaluation_subject(calibration_id, evaluation)


@contextmanager
def deleted_on_failure(artifacts: ArtifactStore, prefix: str) -> Iterator[None]:
    """Delete the files below a prefix if the block fails.

    After an unknown outcome they stay, since a row may refer to them; otherwise the sweeper
    deletes them.
    """
    try:
        yield
    except OutcomeUnknown:
        raise
    except BaseException:
        artifacts.delete(artifacts.keys(prefix))
        raise
