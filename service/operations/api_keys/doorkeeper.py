"""Keeps the key ring current: what is made or revoked elsewhere is known within a second."""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import structlog
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from service.errors import ServiceError, Unauthenticated
from service.operations.api_keys.bad_keys import BadKeys
from service.operations.api_keys.caller import Caller, anybody
from service.operations.api_keys.key_ring import (
    ClosedRing,
    KeyRing,
    require_scope,
)
from service.operations.api_keys.pepper import Pepper
from service.operations.tenants import TenantLimits, TenantMeters
from service.storage.api_keys import LiveKey, any_keys, live_keys, note_use
from service.storage.database import Database
from service.storage.tenants import OwnLimits, own_limits

FRESH_SECONDS = 1.0
# While the database is away, keys that were good before serve for so long, as names do.
STALE_SECONDS = 300.0
# How late the time of a key's last use may be.
NOTED_EVERY_SECONDS = 600.0

log = structlog.get_logger(__name__)


class Doorkeeper:
    """Tells who asks, from memory; the keys are read again every second.

    Parameters
    ----------
    database : Database
    tenant_id : UUID
        Whose calibrations are meant where no key is asked for.
    pepper : callable
        Finds the pepper; called when keys have changed, for it may be made with the first of them.
    may_be_open : bool
        Whether no key is asked for as long as none was ever made.
    keyless : bool
        Whether none is asked for at all; one that is sent is still looked at.
    limits : TenantLimits, optional
        Of tenants with keys that have none of their own; without it there are none for anybody.
    max_bad_keys : int
        That an address may send in a minute; 0: any number.
    """

    def __init__(
        self,
        database: Database,
        *,
        tenant_id: uuid.UUID,
        pepper: Callable[[], Pepper],
        may_be_open: bool,
        keyless: bool = False,
        limits: TenantLimits | None = None,
        max_bad_keys: int = 0,
    ) -> None:
        self._database = database
        self._bad_keys = BadKeys(max_bad_keys)
        self._meters = None if limits is None else TenantMeters(limits)
        self._anybody = anybody(tenant_id)
        self._pepper = pepper
        self._may_be_open = may_be_open
        self._keyless = keyless
        self._noted: dict[str, float] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keys")
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Future[bool] | None = None
        # Who holds an answer of this one asks again when another is in its place.
        self.ring: KeyRing = ClosedRing()
        self._seen: tuple[list[LiveKey], bool, dict[uuid.UUID, OwnLimits]] | None = None

    def admit(self, given: Sequence[bytes], any_of: Collection[str], peer: str = "") -> Caller:
        """Return who sends these values of ``Authorization``, if it may do one of these.

        ``peer`` is the address they come from.

        Raises
        ------
        Unauthenticated, Forbidden
            If it is nobody who is known, or may not.
        TooManyBadKeys
            If it is nobody, again and again.
        Overloaded
            If the database is away for so long that nobody is known.
        """
        caller = self.known(given, peer)
        require_scope(caller, any_of)
        caller.is_used = True
        return caller

    def known(self, given: Sequence[bytes], peer: str) -> Caller:
        """Return who sends these values, whatever it may do; as `admit`."""
        ring = self.ring
        self._bad_keys.require_room(peer, ring.claimed_id(given))
        try:
            return ring.caller(given)
        except Unauthenticated:
            if given:
                self._bad_keys.note(peer, ring.claimed_id(given))
            raise

    def look(self) -> None:
        """Read the keys and limits; where nothing has changed the ring stays the same object."""
        with self._database.reading() as session:
            found = live_keys(session)
            was_any = bool(found) or any_keys(session)
            own = own_limits(session)
        is_free = self._keyless or (self._may_be_open and not was_any)
        seen = (found, is_free, own)
        if self._seen == seen:
            return
        pepper = self._pepper()
        if any(key.pepper_id != pepper.id for key in found):
            log.error(
                "keys_of_another_pepper", fix="give all processes the same HOWSURE_KEY_PEPPER"
            )
        anonymous = self._anybody if is_free else None
        tenants = {key.tenant_id for key in found}
        meters = {} if self._meters is None else self._meters.of(tenants, own)
        self.ring = KeyRing(found, pepper=pepper, anonymous=anonymous, meters=meters)
        self._seen = seen

    def start(self) -> None:
        """Look again and again, on the running event loop; it was looked once before."""
        self._task = asyncio.get_running_loop().create_task(self._keep_current())

    async def close(self) -> None:
        """Look no more; a look that hangs at the database is not waited for any longer."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=FRESH_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _keep_current(self) -> None:
        loop = asyncio.get_running_loop()
        seen = time.monotonic()
        while True:
            await asyncio.sleep(FRESH_SECONDS)
            asked = time.monotonic()
            looking = self._looking = loop.run_in_executor(self._thread, self._look_and_note)
            while True:
                # A look may hang at a database that is away.
                await asyncio.wait([looking], timeout=FRESH_SECONDS)
                if looking.done():
                    seen = asked if looking.result() else seen
                    break
                self._close_if_stale(seen)
            self._close_if_stale(seen)

    def _close_if_stale(self, seen: float) -> None:
        if time.monotonic() - seen > STALE_SECONDS and not self.ring.is_open:
            self.ring, self._seen = ClosedRing(), None

    def _look_and_note(self) -> bool:
        """Tell whether the database answered."""
        try:
            self.look()
        except (ServiceError, OperationalError):
            return False
        except Exception:
            # A bug; the next look may find better.
            log.exception("unexpected_error")
            return False
        try:
            self._note_use()
        except (ServiceError, SQLAlchemyError) as error:
            log.warning("key_use_not_noted", error=type(error).__name__)
        return True

    def _note_use(self) -> None:
        now = time.monotonic()
        due = [
            key_id
            for key_id in self.ring.used()
            if now - self._noted.get(key_id, -NOTED_EVERY_SECONDS) >= NOTED_EVERY_SECONDS
        ]
        if due:
            with self._database.session(is_news=False) as session:
                note_use(session, due)
            self._noted |= dict.fromkeys(due, now)
