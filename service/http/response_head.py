"""Response heads: security headers, request ids, and the bytes of HTTP/1.1."""

import itertools
import re
import secrets

from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE
from uvicorn.server import ServerState

from service.http.prediction_exchange import Headers, HttpResponse

CONTENT_SECURITY = b"content-security-policy"
CACHE = b"cache-control"

# No HSTS: the proxy that terminates TLS must send it.
STANDING: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (CACHE, b"no-store"),
    (CONTENT_SECURITY, b"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


def completed(given: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers with the standard ones added, unless the route sets them."""
    names = {name for name, _ in given}
    return [*given, *((name, value) for name, value in STANDING if name not in names)]


HEADER = b"x-request-id"
# Key of the id in an ASGI scope's state, as text.
REQUEST_ID = "request_id"
_PLAIN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# Unique to this process.
_PREFIX = secrets.token_hex(6).encode()
_count = itertools.count()


def accepted_id(sent: bytes) -> bytes:
    """Return the client's id of its request; empty if it is too long or not plain."""
    return sent if _PLAIN.fullmatch(sent) else b""


def new_id() -> bytes:
    """Return a unique id."""
    return b"%b%08x" % (_PREFIX, next(_count))


class ResponseHead:
    """Renders response heads with the headers of all responses."""

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._joined = b""

    def head(self, answer: HttpResponse, state: ServerState, *, close: bool) -> bytes:
        """Return the head of a response; with ``close`` it is the connection's last."""
        if state.default_headers is not self._headers:
            # The server makes a new list each second, for the date.
            self._headers = state.default_headers
            always = (*self._headers, *STANDING)
            self._joined = b"".join([b"%b: %b\r\n" % header for header in always])
        end = b"connection: close\r\n\r\n" if close else b"\r\n"
        request_id = answer.request_id or new_id()
        return b"%bx-request-id: %b\r\ncontent-length: %d\r\n%b" % (
            self._written(answer),
            request_id,
            len(answer.body),
            end,
        )

    def _written(self, answer: HttpResponse) -> bytes:
        parts = [STATUS_LINE[answer.status], self._joined]
        for name, value in answer.headers:
            if HEADER_VALUE_RE.search(value):
                raise ValueError(f"header {name!a}: expected no control characters")
            parts += (name, b": ", value, b"\r\n")
        return b"".join(parts)
