"""The keys that are good at one moment, in memory: to know a caller asks no database."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hmac import compare_digest
from types import MappingProxyType
from uuid import UUID

from service.errors import Forbidden, Overloaded, Unauthenticated
from service.operations.api_keys.caller import Caller
from service.operations.api_keys.key_text import KeyText, parsed_key
from service.operations.api_keys.pepper import Pepper
from service.operations.tenants import UNMETERED, TenantMeter
from service.storage.api_keys import LiveKey

# Of what is sent in the header, so that nothing long is ever looked at.
MOST_BYTES = 256
_SCHEME = b"bearer "
_UNKNOWN = "0" * 64
_NO_KEY = "This service asks for an API key: send it as `Authorization: Bearer cal_…`."
_BAD_KEY = "The API key is unknown, revoked or expired, or not written as one."


class KeyRing:
    """Knows callers by what they send; it never changes, a newer one takes its place.

    Parameters
    ----------
    keys : sequence of LiveKey
    pepper : Pepper
    anonymous : Caller, optional
        Who asks without a key; None where one is asked for.
    meters : mapping of UUID to TenantMeter, optional
        Of tenants that are held to limits.
    """

    def __init__(
        self,
        keys: Sequence[LiveKey],
        *,
        pepper: Pepper,
        anonymous: Caller | None = None,
        meters: Mapping[UUID, TenantMeter] = MappingProxyType({}),
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
                    meter=meters.get(key.tenant_id, UNMETERED),
                ),
            )
            for key in keys
        }

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a key, and none is looked at."""
        return self.anonymous is not None and not self.keys

    def caller(self, given: Sequence[bytes]) -> Caller:
        """Return who sends these values of the header ``Authorization``.

        Raises
        ------
        Unauthenticated
            If it is none that is known.
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
        # Compared also where the id is unknown: how long it takes tells nothing of ids.
        is_right = compare_digest(self._pepper.digest(text.secret).encode(), digest.encode())
        if caller is None or not is_right:
            raise Unauthenticated(_BAD_KEY)
        return caller

    def of_key(self, key_id: str) -> Caller | None:
        """Return whose key this id is of, None if it is of none that is good."""
        return self._callers.get(key_id, (_UNKNOWN, None))[1]

    @property
    def session_secret(self) -> bytes:
        """What sessions of pages are signed with; another in the place of another pepper."""
        return self._pepper.digest(b"howsure: the secret of sessions").encode()

    def claimed_id(self, given: Sequence[bytes]) -> str | None:
        """Return the id of the good key that these values would be, their secret not looked at."""
        text = _text(given[0]) if len(given) == 1 else None
        return None if text is None or text.id not in self._callers else text.id

    def used(self) -> Iterable[str]:
        """Return the ids that were used since this was asked last."""
        found = []
        for key_id, (_, caller) in self._callers.items():
            if caller.is_used:
                caller.is_used = False
                found.append(key_id)
        return found


class ClosedRing(KeyRing):
    """For as long as nobody knows which keys are good."""

    def __init__(self) -> None:
        super().__init__([], pepper=Pepper(b""))

    def caller(self, given: Sequence[bytes]) -> Caller:  # noqa: ARG002 - nobody gets in with any
        """Let nobody in."""
        raise Overloaded("The database does not answer, so no API key is known; try again.")


def _text(sent: bytes) -> KeyText | None:
    if len(sent) > MOST_BYTES or sent[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return parsed_key(sent[len(_SCHEME) :].strip())


def require_scope(caller: Caller, any_of: Collection[str]) -> None:
    """Refuse a caller who may do none of these.

    Raises
    ------
    Forbidden
        Which says the scope that is missing.
    """
    if caller.scopes.isdisjoint(any_of):
        needed = " or ".join(f"`{scope}`" for scope in sorted(any_of))
        raise Forbidden(f"This API key may not do this: it needs the scope {needed}.")
