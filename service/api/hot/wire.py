"""Answers as the bytes of HTTP/1.1."""

from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE
from uvicorn.server import ServerState

from service.api.hot.exchange import Headers, HotAnswer
from service.api.request_id import new_id
from service.api.standing_headers import STANDING

# Beginnings that are kept until the date changes.
MOST_KEPT = 64


class Wire:
    """Writes answers with the headers that the server gives to all of them."""

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._joined = b""
        self._kept: dict[tuple[int, Headers], bytes] = {}

    def head(self, answer: HotAnswer, state: ServerState, *, close: bool) -> bytes:
        """Return all of an answer before its body; ``close``: it is the connection's last."""
        if state.default_headers is not self._headers:
            # The server makes a new list each second, for the date.
            self._headers = state.default_headers
            always = (*self._headers, *STANDING)
            self._joined = b"".join([b"%b: %b\r\n" % header for header in always])
            self._kept.clear()
        key = (answer.status, answer.headers)
        beginning = self._kept.get(key) if isinstance(answer.headers, tuple) else None
        if beginning is None:
            beginning = self._written(answer)
            if isinstance(answer.headers, tuple) and len(self._kept) < MOST_KEPT:
                self._kept[key] = beginning
        end = b"connection: close\r\n\r\n" if close else b"\r\n"
        request_id = answer.request_id or new_id()
        return b"%bx-request-id: %b\r\ncontent-length: %d\r\n%b" % (
            beginning,
            request_id,
            len(answer.body),
            end,
        )

    def _written(self, answer: HotAnswer) -> bytes:
        parts = [STATUS_LINE[answer.status], self._joined]
        for name, value in answer.headers:
            if HEADER_VALUE_RE.search(value):
                raise ValueError(f"header {name!a}: expected no control characters")
            parts += (name, b": ", value, b"\r\n")
        return b"".join(parts)
