"""Sessions of the web pages: a signed cookie with the id of a key; the server stores nothing."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from http.cookies import CookieError, SimpleCookie

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
_PURPOSE = b"howsure: sessions of pages"
_WRITTEN = re.compile(
    r"([0-9A-Za-z]{12})\.([0-9]{1,12})\.([0-9]{1,12})\.([\w-]{22})\.([0-9a-f]{64})"
)


@dataclass(frozen=True)
class PageSession:
    """The key of a session, its start and last use, and a nonce."""

    key_id: str
    since: int
    seen: int
    nonce: str

    def written(self, secret: bytes) -> str:
        """Return the value of the cookie."""
        text = f"{self.key_id}.{self.since}.{self.seen}.{self.nonce}"
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
    return PageSession(key_id, now, now, secrets.token_urlsafe(16))


def session_cookie(*, secure: bool) -> str:
    """Return the name of the cookie, over TLS or not."""
    return f"{_HOST}{_NAME}" if secure else _NAME


def read_session(cookies: Mapping[str, str], secret: bytes, *, secure: bool) -> PageSession | None:
    """Return the valid session of a request; None if there is none.

    The active keys tell whether its key is still valid.
    """
    found = _WRITTEN.fullmatch(cookies.get(session_cookie(secure=secure), ""))
    if found is None:
        return None
    text = found[0].rpartition(".")[0]
    if not hmac.compare_digest(_signature(text, secret), found[5]):
        return None
    session = PageSession(found[1], int(found[2]), int(found[3]), found[4])
    return session if session.seconds_left() > 0 else None


def cookies_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the cookies of a request by name; none if they cannot be parsed."""
    sent = b"; ".join(value for name, value in headers if name == b"cookie")
    found = SimpleCookie()
    try:
        found.load(sent.decode("latin-1"))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in found.items()}


def _signature(text: str, secret: bytes) -> str:
    return hmac.new(secret, _PURPOSE + b"\0" + text.encode(), hashlib.sha256).hexdigest()
