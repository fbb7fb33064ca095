"""CSRF tokens: a request that changes something comes from our pages or has an API key."""

import base64
import hashlib
import hmac
import re
import secrets

from starlette.requests import Request

from service.access.page_session import SESSION, visit_cookie
from service.errors import Forbidden

FIELD = "csrf"
HEADER = "x-csrf-token"
_NONCE = re.compile(r"[\w-]{22}", re.ASCII)
_PURPOSE = b"howsure: tokens of forms\0"
_OURS = ("same-origin", "none")


def nonce_of(request: Request) -> str | None:
    """Return the secret of this visitor's tokens; None if there is none yet."""
    session = request.scope.get(SESSION)
    if session is not None:
        return str(session.nonce)
    found = request.cookies.get(visit_cookie(secure=request.url.scheme == "https"), "")
    return found if _NONCE.fullmatch(found) else None


def new_nonce() -> str:
    """Return a random secret."""
    return secrets.token_urlsafe(16)


def token_of(nonce: str) -> str:
    """Return the token for the visitor's forms; other sites cannot read the cookie."""
    digest = hashlib.sha256(_PURPOSE + nonce.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def require_token(request: Request, sent: str | None) -> None:
    """Refuse a request that another site may have caused.

    A request with the header ``Authorization`` needs no token, because other sites cannot send it.

    Raises
    ------
    Forbidden
        If the token is missing or belongs to another visitor.
    """
    if "authorization" in request.headers:
        return
    nonce = nonce_of(request)
    given = sent or request.headers.get(HEADER) or ""
    is_right = nonce is not None and hmac.compare_digest(token_of(nonce).encode(), given.encode())
    if not is_right or request.headers.get("sec-fetch-site", "none") not in _OURS:
        raise Forbidden("The form has expired or belongs to another site. Reload the page.")
