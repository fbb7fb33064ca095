"""An upload on disk, for as long as a route works on it, within what its tenant may use."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from uuid import UUID

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from service.api.multipart import PartRule, SpooledUpload, UploadLimits, spool_multipart
from service.api.upload_room import UploadRoom, UploadRooms
from service.operations.tenants import TenantLimits
from service.operations.tenants.quotas import before_upload
from service.operations.workspace import Workspace


@asynccontextmanager
async def received_upload(
    request: Request,
    workspace: Workspace,
    tenant_id: UUID,
    limits: TenantLimits,
    *,
    parts: Mapping[str, PartRule],
    key: str | None = None,
    queues: bool = True,
) -> AsyncIterator[SpooledUpload]:
    """Receive a form, and remove it from disk at the end.

    ``key`` is the request's idempotency key; ``queues`` tells whether a job is to come of it.

    Raises
    ------
    JobLimitReached, StorageLimitReached
        Before anything of the body is read, if the tenant may not have it; for a body that does
        not say how long it is, once too much has come.
    ServiceError
        If it cannot be received; see `spool_multipart`.
    """
    upload_limits: UploadLimits = request.app.state.upload_limits
    rooms: UploadRooms = request.app.state.upload_rooms
    stored = await run_in_threadpool(
        before_upload, workspace.database, tenant_id, limits, queues=queues, key=key
    )
    claimed = request.headers.get("content-length", "0")
    with UploadRoom(
        rooms, tenant_id, limits, stored=stored, claimed=int(claimed) if claimed.isdecimal() else 0
    ) as room:
        spooled = await spool_multipart(
            request.headers.get("content-type", ""),
            room.counted(request.stream()),
            folder=workspace.spool.path,
            limits=upload_limits,
            parts=parts,
        )
        try:
            yield spooled
        finally:
            await run_in_threadpool(spooled.discard)
