"""How much tenants are uploading to this process, beside what they have stored."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Self
from uuid import UUID

from service.operations.tenants import TenantLimits
from service.operations.tenants.quotas import check_bytes


class UploadRooms:
    """Counts bytes by tenant; for one event loop."""

    def __init__(self) -> None:
        self.uploading: Counter[UUID] = Counter()


class UploadRoom:
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
        rooms: UploadRooms,
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
