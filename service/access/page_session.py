"""Sessions of the web pages: a signed cookie with the id of a key; the server stores nothing."""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from service.http.prediction_exchange import Headers

# Since the sign-in, and since the last page.
ABSOLUTE_SECONDS = 12 * 3600
IDLE_SECONDS = 2 * 3600
# A page renews the cookie at most this often.
RENEWED_SECONDS = 300
# Key of the session in an ASGI scope.
SESSION = "howsure.session"
# Browsers accept this prefix only from this host, and only over TLS.
_HOST = "__Host-"
_NAME = "howsure-session"
_OURS = frozenset(f"{host}{_NAME}".encode() for host in ("", _HOST))
# What the service writes needs no quotes. Python reads quoted values in quadratic time
# before 3.11.10 and 3.12.6 (CVE-2024-7592).
_VALUE = re.compile(rb"[\w.-]{1,300}")
_PURPOSE = b"howsure: sessions of pages"
_WRITTEN = re.compile(r"([0-9A-Za-z]{12})\.([0-9]{1,12})\.([0-9]{1,12})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class PageSession:
    """The key of a session, its start and last use."""

    key_id: str
    since: int
    seen: int

    def written(self, secret: bytes) -> str:
        """Return the value of the cookie."""
        text = f"{self.key_id}.{self.since}.{self.seen}"
        return f"{text}.{_signature(text, secret)}"

    def renewed(self) -> "PageSession | None":
        """Return the session with its last use set to now; None if no new cookie is needed."""
        now = int(time.time())
        return replace(self, seen=now) if now - self.seen >= RENEWED_SECONDS else None

    def seconds_left(self) -> int:
        """Return the lifetime of the cookie in seconds."""
        return max(
            0, min(self.since + ABSOLUTE_SECONDS, self.seen + IDLE_SECONDS) - int(time.time())
        )


def new_session(key_id: str) -> PageSession:
    """Return a session that begins now."""
    now = int(time.time())
    return PageSession(key_id, now, now)


def session_cookie(*, secure: bool) -> str:
    """Return the name of the cookie, over TLS or not."""
    return f"{_HOST}{_NAME}" if secure else _NAME


def read_session(
    cookies: Mapping[str, str], secret_of: Callable[[str], bytes | None], *, secure: bool
) -> PageSession | None:
    """Return the valid session of a request; None if there is none.

    ``secret_of`` returns the secret that signs the sessions of a valid key, None for other keys.
    """
    found = _WRITTEN.fullmatch(cookies.get(session_cookie(secure=secure), ""))
    if found is None:
        return None
    text, secret = found[0].rpartition(".")[0], secret_of(found[1])
    if secret is None or not hmac.compare_digest(_signature(text, secret), found[4]):
        return None
    session = PageSession(found[1], int(found[2]), int(found[3]))
    return session if session.seconds_left() > 0 else None


def without_foreign_cookies(headers: Headers) -> Headers:
    """Return the headers without cookies of other services, which no code here should parse.

    Browsers send the cookies of all ports of a host.
    """
    if not any(name == b"cookie" for name, _ in headers):
        return headers
    kept = [(name, value) for name, value in headers if name != b"cookie"]
    ours = [b"%b=%b" % pair for pair in _own_cookies(headers)]
    return [*kept, (b"cookie", b"; ".join(ours))] if ours else kept


def cookies_of(headers: Headers) -> dict[str, str]:
    """Return the service's own cookies of a request by name."""
    return {name.decode(): value.decode() for name, value in _own_cookies(headers)}


def _own_cookies(headers: Headers) -> list[tuple[bytes, bytes]]:
    sent = (part for name, value in headers if name == b"cookie" for part in value.split(b";"))
    pairs = (part.strip().partition(b"=") for part in sent)
    return [(name, value) for name, _, value in pairs if name in _OURS and _VALUE.fullmatch(value)]


def _signature(text: str, secret: bytes) -> str:
    return hmac.new(secret, _PURPOSE + b"\0" + text.encode(), hashlib.sha256).hexdigest()
