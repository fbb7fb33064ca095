"""Parsing of requests by httptools, and rules for request heads."""

from typing import Protocol

import httptools

from service.errors import MalformedRequest
from service.http.prediction_exchange import Headers

VERSIONS = ("1.0", "1.1")


def check_framing(version: str, headers: Headers) -> None:
    """Refuse a head that another server may interpret differently, beyond the parser's own checks.

    Raises
    ------
    MalformedRequest
        If the version is not HTTP/1.0 or 1.1, ``Host`` is missing in 1.1 or repeated, or the body
        has neither a length nor, in 1.1, chunks.
    """
    if version not in VERSIONS:
        raise MalformedRequest.at("request", "expected HTTP/1.1 or HTTP/1.0")
    n_hosts = 0
    for name, value in headers:
        if name == b"host":
            n_hosts += 1
        elif name == b"transfer-encoding" and (
            version != "1.1" or value.strip().lower() != b"chunked"
        ):
            raise MalformedRequest.at("Transfer-Encoding", "expected only chunked, in HTTP/1.1")
    if n_hosts > 1 or (not n_hosts and version == "1.1"):
        raise MalformedRequest.at("Host", "expected this header once")


def expects_continue(headers: Headers) -> bool:
    """Tell whether the client waits for ``100 Continue`` before it sends the body."""
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)


def may_be_remembered(headers: Headers) -> bool:
    """Tell whether the next request with equal headers needs no new check."""
    return not any(name in (b"expect", b"transfer-encoding") for name, _ in headers)


class Callbacks(Protocol):
    """The callbacks of a parser."""

    def on_message_begin(self) -> None:
        """Start a request."""

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or a trailer."""

    def on_headers_complete(self) -> None:
        """End the head."""

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""

    def on_message_complete(self) -> None:
        """End the request."""


def request_parser(callbacks: Callbacks) -> httptools.HttpRequestParser:
    """Return a parser that expects a request."""
    parser = httptools.HttpRequestParser(callbacks)
    # Bytes after a request with `Connection: close` must not prevent its response.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def resumed_parser(callbacks: Callbacks, framing: Headers) -> httptools.HttpRequestParser:
    """Return a parser that expects a body with this length or transfer encoding.

    Without a body it calls `on_message_complete` at once. Then it reads requests.
    """
    parser = request_parser(_Resumed(callbacks))
    lines = b"".join(b"%b: %b\r\n" % pair for pair in framing)
    parser.feed_data(b"POST / HTTP/1.1\r\n" + lines + b"\r\n")
    return parser


class _Resumed:
    """Passes on everything except the first head."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._is_first_head = True
        self.on_body = callbacks.on_body
        self.on_message_complete = callbacks.on_message_complete

    def on_message_begin(self) -> None:
        if not self._is_first_head:
            self._callbacks.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._is_first_head:
            self._callbacks.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_first_head:
            self._callbacks.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_first_head:
            self._is_first_head = False
        else:
            self._callbacks.on_headers_complete()
