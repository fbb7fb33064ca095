"""How much tenants are uploading to this process, beside what they have stored."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self
from uuid import UUID

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from service.access.quotas import before_upload, check_bytes
from service.access.rate_limits import TenantLimits
from service.http.uploads import PartRule, SpooledUpload, UploadLimits, spool_multipart
from service.workspace import Workspace


class UploadQuotas:
    """Counts bytes by tenant; for one event loop."""

    def __init__(self) -> None:
        self.uploading: Counter[UUID] = Counter()


class UploadQuota:
    """An upload of a tenant, counted at the length it claims, or what has come if that is more.

    Parameters
    ----------
    rooms : UploadRooms
        Of all uploads to this process.
    tenant_id, limits
        Whose it is, and what that may use.
    stored : int
        Bytes that the tenant has stored before.
    claimed : int
        How long the body is said to be.
    """

    def __init__(
        self,
        rooms: UploadQuotas,
        tenant_id: UUID,
        limits: TenantLimits,
        *,
        stored: int,
        claimed: int,
    ) -> None:
        self._uploading = rooms.uploading
        self._tenant_id = tenant_id
        self._limits = limits
        self._stored = stored
        self._claimed = claimed
        self._counted = 0

    def __enter__(self) -> Self:
        """Count what is claimed.

        Raises
        ------
        StorageLimitReached
            If that is more than may be stored.
        """
        self._count(self._claimed)
        return self

    def __exit__(self, *_: object) -> None:
        self._uploading[self._tenant_id] -= self._counted
        if not self._uploading[self._tenant_id]:
            del self._uploading[self._tenant_id]

    async def counted(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass a body on.

        Raises
        ------
        StorageLimitReached
            Once more has come than may be stored.
        """
        received = 0
        async for chunk in stream:
            received += len(chunk)
            if received > self._counted:
                self._count(received)
            yield chunk

    def _count(self, size: int) -> None:
        more = size - self._counted
        check_bytes(self._stored + self._uploading[self._tenant_id] + more, self._limits)
        self._uploading[self._tenant_id] += more
        self._counted = size


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
    rooms: UploadQuotas = request.app.state.upload_rooms
    stored = await run_in_threadpool(
        before_upload, workspace.database, tenant_id, limits, queues=queues, key=key
    )
    claimed = request.headers.get("content-length", "0")
    with UploadQuota(
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
