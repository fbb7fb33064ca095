"""Credentials of a request: the Authorization header and the page session."""

from starlette.types import Scope

from service.access.api_keys import CALLER, Caller
from service.access.authenticator import ActiveKeys
from service.access.page_session import SESSION, cookies_of, read_session
from service.http.prediction_exchange import Headers

__all__ = ["CALLER", "authorization"]


def authorization(headers: Headers) -> list[bytes]:
    """Return the values of ``Authorization``; header names are lower case."""
    return [value for name, value in headers if name == b"authorization"]


PAGES = "/pages/"
_SAFE = frozenset({"GET", "HEAD"})


def signed_in(scope: Scope, path: str, ring: ActiveKeys) -> Caller | None:
    """Return the signed-in caller; None without a valid session, or where cookies do not count.

    Cookies authenticate reads and the forms of pages, which only pages of the service can send.
    All other changes need a key in the header, which no other site can make a browser send.
    """
    if scope["method"] not in _SAFE and not path.startswith(PAGES):
        return None
    is_secure = scope.get("scheme") == "https"
    session = read_session(cookies_of(scope["headers"]), ring.session_secret, secure=is_secure)
    if session is None:
        return None
    caller = ring.of_key(session.key_id)
    if caller is not None:
        scope[SESSION] = session
    return caller
