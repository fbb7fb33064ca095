"""Storage quotas of tenants while their uploads are being received."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from uuid import UUID

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from service.access.quotas import before_upload, check_bytes
from service.access.rate_limits import TenantLimits
from service.http.services import services_of
from service.http.uploads import PartRule, SpooledUpload, spool_multipart
from service.shared_amounts import Hold
from service.workspace import Workspace


async def _counted(
    stream: AsyncIterator[bytes], hold: Hold, check: Callable[[], None]
) -> AsyncIterator[bytes]:
    """Pass a body on; hold its bytes, and check them when there are more than declared."""
    received = 0
    async for chunk in stream:
        received += len(chunk)
        if received > hold.amount:
            hold.change_to(received)
            check()
        yield chunk


@asynccontextmanager
async def received_upload(
    request: Request,
    workspace: Workspace,
    tenant_id: UUID,
    limits: TenantLimits,
    *,
    parts: Mapping[str, PartRule],
    key: str | None = None,
    dry_run: bool = False,
) -> AsyncIterator[SpooledUpload]:
    """Receive a form, and remove it from disk when the block ends.

    ``key`` is the request's idempotency key; a ``dry_run`` counts as a job of the
    tenant until the block ends.

    Raises
    ------
    JobLimitReached, StorageLimitReached, TooManyRequests
        Before the body is read if a quota is used up; for a body without a declared length, once
        it exceeds the quota.
    ServiceError
        If the form is invalid; see `spool_multipart`.
    """
    services = services_of(request.scope)
    length = request.headers.get("content-length", "0")
    declared = int(length) if length.isdecimal() else 0
    uploading = services.uploading
    with (
        services.job_watch.waits.held(tenant_id),
        services.dry_runs.held(tenant_id, int(dry_run)),
        uploading.held(tenant_id, declared) as hold,
    ):
        # Uploads that begin while the database is read are refused for this one, not it for them.
        held = uploading.held_by(tenant_id)
        stored = await run_in_threadpool(
            before_upload,
            workspace.database,
            tenant_id,
            limits,
            in_progress=services.dry_runs.held_by(tenant_id) + (not dry_run),
            key=key,
        )

        check_bytes(stored + min(held, uploading.held_by(tenant_id)), limits)

        def check() -> None:
            check_bytes(stored + uploading.held_by(tenant_id), limits)

        spooled = await spool_multipart(
            request.headers.get("content-type", ""),
            _counted(request.stream(), hold, check),
            folder=workspace.spool.path,
            limits=services.upload_limits,
            parts=parts,
        )
        try:
            yield spooled
        finally:
            await run_in_threadpool(spooled.discard)
