"""Who is signed in with a cookie, where one is looked at at all."""

from starlette.types import Scope

from service.operations.api_keys import Caller, KeyRing
from service.operations.api_keys.page_session import SESSION, cookies_of, read_session

PAGES = "/pages/"
_SAFE = frozenset({"GET", "HEAD"})


def signed_in(scope: Scope, path: str, ring: KeyRing) -> Caller | None:
    """Return who is signed in, None if nobody is, or a cookie says nothing here.

    It tells who reads. What changes something takes a key in the header, which no other site can
    make a browser send; but for forms of the pages, which ask for a token of the session.
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
