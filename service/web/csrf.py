"""Tokens of forms: a request that changes something comes from a page of ours, or has a key."""

import base64
import hashlib
import hmac
import re
import secrets

from starlette.requests import Request

from service.access.page_session import SESSION
from service.errors import Forbidden

FIELD = "csrf"
HEADER = "x-csrf-token"
# Of who is not signed in: on the page that signs in, and where no key is asked for.
_VISIT = "howsure-visit"
_NONCE = re.compile(r"[\w-]{22}", re.ASCII)
_PURPOSE = b"howsure: tokens of forms\0"
_OURS = ("same-origin", "none")


def visit_cookie(request: Request) -> str:
    """Return the name of the cookie that tells one visitor from another, and nothing else."""
    return f"__Host-{_VISIT}" if request.url.scheme == "https" else _VISIT


def nonce_of(request: Request) -> str | None:
    """Return what the tokens of this visitor are made from; None if there is nothing yet."""
    session = request.scope.get(SESSION)
    if session is not None:
        return str(session.nonce)
    found = request.cookies.get(visit_cookie(request), "")
    return found if _NONCE.fullmatch(found) else None


def new_nonce() -> str:
    """Return what nobody can guess."""
    return secrets.token_urlsafe(16)


def token_of(nonce: str) -> str:
    """Return the token that the forms of a visitor have: other sites cannot read the cookie."""
    digest = hashlib.sha256(_PURPOSE + nonce.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def require_token(request: Request, sent: str | None) -> None:
    """Refuse what another site may have made a browser send.

    A request with a header ``Authorization`` needs no token: no other site can send one.

    Raises
    ------
    Forbidden
        If the token is missing, or of another visitor.
    """
    if "authorization" in request.headers:
        return
    nonce = nonce_of(request)
    given = sent or request.headers.get(HEADER) or ""
    is_right = nonce is not None and hmac.compare_digest(token_of(nonce).encode(), given.encode())
    if not is_right or request.headers.get("sec-fetch-site", "none") not in _OURS:
        raise Forbidden("This form is out of date, or is not of this service: open the page anew.")
