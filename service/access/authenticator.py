"""Authentication by API keys that are held in memory: no request reads the database."""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hmac import compare_digest
from types import MappingProxyType
from uuid import UUID

import structlog
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from service.access.api_keys import Caller, KeyText, Pepper, anybody, parsed_key
from service.access.rate_limits import UNLIMITED, TenantLimiter, TenantLimiters, TenantLimits
from service.errors import Forbidden, Overloaded, ServiceError, Unauthenticated
from service.storage.api_keys import ActiveKey, KeyCounts, active_keys, key_counts, note_use
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS, OwnLimits, own_limits

# Longest header that is parsed.
MOST_BYTES = 256
_SCHEME = b"bearer "
_UNKNOWN = "0" * 64
_NO_KEY = "This service needs an API key: send it as `Authorization: Bearer cal_…`."
_BAD_KEY = "The API key is unknown, revoked, expired or malformed."


class ActiveKeys:
    """The valid API keys at one moment. It never changes: a newer object replaces it.

    Parameters
    ----------
    keys : sequence of ActiveKey
    pepper : Pepper
    anonymous : Caller, optional
        The caller of requests without a key; None if a key is required.
    meters : mapping of UUID to TenantLimiter, optional
        Limiters of tenants with limits.
    """

    def __init__(
        self,
        keys: Sequence[ActiveKey],
        *,
        pepper: Pepper,
        anonymous: Caller | None = None,
        meters: Mapping[UUID, TenantLimiter] = MappingProxyType({}),
    ) -> None:
        self.keys = keys
        self.anonymous = anonymous
        self._pepper = pepper
        self._callers = {
            key.id: (
                key.digest,
                Caller(
                    key.tenant_id,
                    key.id,
                    key.scopes,
                    meter=meters.get(key.tenant_id, UNLIMITED),
                ),
            )
            for key in keys
        }

    @property
    def is_open(self) -> bool:
        """Whether the service needs no key; keys that are sent are ignored."""
        return self.anonymous is not None and not self.keys

    def caller(self, given: Sequence[bytes]) -> Caller:
        """Return the caller with these values of the header ``Authorization``.

        Raises
        ------
        Unauthenticated
            If the key is missing or invalid.
        """
        if self.anonymous is not None and (not self.keys or not given):
            return self.anonymous
        if len(given) != 1:
            raise Unauthenticated(_NO_KEY if not given else _BAD_KEY)
        sent = given[0]
        text = _text(sent)
        if text is None:
            is_other = len(sent) <= MOST_BYTES and sent[: len(_SCHEME)].lower() != _SCHEME
            raise Unauthenticated(_NO_KEY if is_other else _BAD_KEY)
        digest, caller = self._callers.get(text.id, (_UNKNOWN, None))
        # Compared even if the id is unknown, so that the time reveals nothing about ids.
        is_right = compare_digest(self._pepper.digest(text.secret).encode(), digest.encode())
        if caller is None or not is_right:
            raise Unauthenticated(_BAD_KEY)
        return caller

    def of_key(self, key_id: str) -> Caller | None:
        """Return the caller of the valid key with this id; None if there is none."""
        return self._callers.get(key_id, (_UNKNOWN, None))[1]

    def session_secret(self, key_id: str) -> bytes | None:
        """Return the secret that signs a key's page sessions; None if the key is invalid.

        It depends on the pepper and on the digest of the key, so nobody can sign in who knows only
        one of the two.
        """
        digest, caller = self._callers.get(key_id, (_UNKNOWN, None))
        if caller is None:
            return None
        return self._pepper.digest(f"howsure: the secret of sessions {digest}".encode()).encode()

    def used(self) -> Iterable[str]:
        """Return the ids of keys used since the last call."""
        found = []
        for key_id, (_, caller) in self._callers.items():
            if caller.is_used:
                caller.is_used = False
                found.append(key_id)
        return found


class KeysUnavailable(ActiveKeys):
    """Refuses every caller while the keys cannot be read."""

    def __init__(self) -> None:
        super().__init__([], pepper=Pepper(b""))

    def caller(self, given: Sequence[bytes]) -> Caller:  # noqa: ARG002 - nobody gets in with any
        """Refuse every caller."""
        raise Overloaded(
            "The database does not answer, so API keys cannot be checked. Retry later."
        )


def _text(sent: bytes) -> KeyText | None:
    if len(sent) > MOST_BYTES or sent[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return parsed_key(sent[len(_SCHEME) :].strip())


def require_scope(caller: Caller, any_of: Collection[str]) -> None:
    """Refuse a caller that has none of these scopes.

    Raises
    ------
    Forbidden
        If the caller has none of them; the message names them.
    """
    if caller.scopes.isdisjoint(any_of):
        needed = " or ".join(f"`{scope}`" for scope in sorted(any_of))
        raise Forbidden(f"This API key may not do this: it needs the scope {needed}.")


FRESH_SECONDS = 1.0
# A stopping service waits so long for a read.
CLOSE_SECONDS = 5.0
# While the database is unavailable, known keys stay valid for this time.
STALE_SECONDS = 300.0
# Precision of the recorded time of last use.
NOTED_EVERY_SECONDS = 600.0

log = structlog.get_logger(__name__)


class Authenticator:
    """Identifies callers from memory; reads the keys again every second.

    Parameters
    ----------
    database : Database
    tenant_id : UUID
        The tenant of requests without a key.
    pepper : callable
        Finds the pepper; called when keys have changed, because the first key creates it.
    may_be_open : bool
        Whether no key is needed until the first one is created.
    keyless : bool
        Whether no key is ever needed; a key that is sent is still checked.
    limits : TenantLimits, optional
        Default limits of tenants with keys; without it no tenant has limits.
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
    ) -> None:
        self._database = database
        self._meters = None if limits is None else TenantLimiters(limits)
        self._anybody = anybody(tenant_id)
        self._pepper = pepper
        self._may_be_open = may_be_open
        self._keyless = keyless
        self._noted: dict[str, float] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keys")
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Future[None] | None = None
        self._read_at = time.monotonic()
        # Results of this object are valid until another object replaces it.
        self.ring: ActiveKeys = KeysUnavailable()
        self._seen: tuple[KeyCounts, dict[uuid.UUID, OwnLimits]] | None = None

    def admit(self, values: Sequence[bytes], any_of: Collection[str]) -> Caller:
        """Return the caller with these values of ``Authorization`` if it has one of these scopes.

        Raises
        ------
        Unauthenticated, Forbidden
            If the caller is unknown or lacks the scope.
        Overloaded
            If the database has been unavailable for too long.
        """
        caller = self.ring.caller(values)
        require_scope(caller, any_of)
        caller.is_used = True
        return caller

    def look(self) -> None:
        """Count the keys, and read them and the limits if they changed, to replace `ring`."""
        begun = time.monotonic()
        with self._database.reading(ALL_TENANTS) as session:
            seen = counts, own = key_counts(session), own_limits(session)
            self._read_at = begun
            if self._seen == seen:
                return
            found = active_keys(session)
        is_free = self._keyless or (self._may_be_open and not counts.made)
        pepper = self._pepper()
        if any(key.pepper_id != pepper.id for key in found):
            log.error(
                "keys_of_another_pepper", fix="give all processes the same HOWSURE_KEY_PEPPER"
            )
        anonymous = self._anybody if is_free else None
        tenants = {key.tenant_id for key in found}
        meters = {} if self._meters is None else self._meters.of(tenants, own)
        # In this order: what `_close_if_stale` forgets in between is read again.
        self._seen = seen
        self.ring = ActiveKeys(found, pepper=pepper, anonymous=anonymous, meters=meters)

    def start(self) -> None:
        """Start to read the keys periodically on the running event loop, after the first read."""
        self._task = asyncio.get_running_loop().create_task(self._keep_current())

    async def close(self) -> None:
        """Stop reading; a read that hangs at the database is abandoned."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=CLOSE_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _keep_current(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(FRESH_SECONDS)
            looking = self._looking = loop.run_in_executor(self._thread, self._look_and_note)
            while not looking.done():
                # The read may hang while the database is unavailable.
                await asyncio.wait([looking], timeout=FRESH_SECONDS)
                self._close_if_stale()

    def _close_if_stale(self) -> None:
        is_stale = time.monotonic() - self._read_at > STALE_SECONDS
        if is_stale and not self.ring.is_open and not isinstance(self.ring, KeysUnavailable):
            self.ring, self._seen = KeysUnavailable(), None

    def _look_and_note(self) -> None:
        try:
            self.look()
        except (ServiceError, OperationalError):
            return
        except Exception:
            # A bug; the next read may succeed.
            log.exception("unexpected_error")
            return
        try:
            self._note_use()
        except (ServiceError, SQLAlchemyError) as error:
            log.warning("key_use_not_noted", error=type(error).__name__)

    def _note_use(self) -> None:
        now = time.monotonic()
        due = [
            key_id
            for key_id in self.ring.used()
            if now - self._noted.get(key_id, -NOTED_EVERY_SECONDS) >= NOTED_EVERY_SECONDS
        ]
        if due:
            with self._database.session(ALL_TENANTS, invalidates_cache=False) as session:
                note_use(session, due)
            self._noted |= dict.fromkeys(due, now)
