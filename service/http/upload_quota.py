"""Storage quotas of tenants while their uploads are being received."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Self
from uuid import UUID

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from service.access.quotas import before_upload, check_bytes
from service.access.rate_limits import TenantLimits
from service.http.services import services_of
from service.http.uploads import PartRule, SpooledUpload, spool_multipart
from service.workspace import Workspace


@dataclass(eq=False, repr=False)
class UploadQuota:
    """One upload of a tenant; it counts with its declared length, or more if more has come.

    Parameters
    ----------
    uploading : Counter
        Bytes that each tenant is uploading to this process; for one event loop.
    tenant_id, limits
        The tenant and its limits.
    stored : int
        Bytes that the tenant had stored before.
    declared : int
        The declared length of the body.
    """

    uploading: Counter[UUID]
    tenant_id: UUID
    limits: TenantLimits
    _: KW_ONLY
    stored: int
    declared: int

    def __post_init__(self) -> None:
        self._counted = 0

    def __enter__(self) -> Self:
        """Count the declared length.

        Raises
        ------
        StorageLimitReached
            If it exceeds the storage quota.
        """
        self._count(self.declared)
        return self

    def __exit__(self, *_: object) -> None:
        self.uploading[self.tenant_id] -= self._counted
        if not self.uploading[self.tenant_id]:
            del self.uploading[self.tenant_id]

    async def counted(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass a body on and count it.

        Raises
        ------
        StorageLimitReached
            Once the body exceeds the storage quota.
        """
        received = 0
        async for chunk in stream:
            received += len(chunk)
            if received > self._counted:
                self._count(received)
            yield chunk

    def _count(self, size: int) -> None:
        more = size - self._counted
        check_bytes(self.stored + self.uploading[self.tenant_id] + more, self.limits)
        self.uploading[self.tenant_id] += more
        self._counted = size


@contextmanager
def _counted(counts: Counter[UUID], tenant_id: UUID) -> Iterator[None]:
    counts[tenant_id] += 1
    try:
        yield
    finally:
        counts[tenant_id] -= 1
        if not counts[tenant_id]:
            del counts[tenant_id]


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
    JobLimitReached, StorageLimitReached
        Before the body is read if a quota is used up; for a body without a declared length, once
        it exceeds the quota.
    ServiceError
        If the form is invalid; see `spool_multipart`.
    """
    services = services_of(request.scope)
    length = request.headers.get("content-length", "0")
    declared = int(length) if length.isdecimal() else 0
    with ExitStack() as counted:
        if dry_run:
            counted.enter_context(_counted(services.dry_runs, tenant_id))
        stored = await run_in_threadpool(
            before_upload,
            workspace.database,
            tenant_id,
            limits,
            in_progress=services.dry_runs[tenant_id] + (not dry_run),
            key=key,
        )
        quota = UploadQuota(services.uploading, tenant_id, limits, stored=stored, declared=declared)
        counted.enter_context(quota)
        spooled = await spool_multipart(
            request.headers.get("content-type", ""),
            quota.counted(request.stream()),
            folder=workspace.spool.path,
            limits=services.upload_limits,
            parts=parts,
        )
        try:
            yield spooled
        finally:
            await run_in_threadpool(spooled.discard)
