"""Reading of requests; httptools decides where each one begins and ends."""

from mmap import mmap
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.access.rate_limits import TenantLimiter
from service.errors import MalformedRequest, ServiceError, TooLarge
from service.http.connection_context import app_cycle
from service.http.parsers import (
    check_framing,
    expects_continue,
    may_be_remembered,
    request_parser,
    resumed_parser,
)
from service.http.prediction_exchange import (
    GiveUp,
    HttpResponse,
    ReceivedRequest,
    RequestHead,
    prediction_head,
)
from service.http.response_head import accepted_id
from service.shared_amounts import Hold
from service.untouched_memory import first_bytes, untouched_memory

if TYPE_CHECKING:
    from service.http.connection import Connection

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Longer values of the headers that are not compared with the last head are checked again.
SHORT_BYTES = 128
# Requests in so few received bytes are parsed together, at most some eighty.
PIECE_BYTES = 2048
CHUNKED_BYTES = 8192
END_OF_HEAD = b"\r\n\r\n"
LARGE_BODY_BYTES = 1024**2


class Prediction(ReceivedRequest, eq=False):
    """A complete prediction request; it passes its response to its connection, once."""

    connection: "Connection | None" = None
    keep_alive: bool = True
    give_up: GiveUp | None = None

    def reply(self, answer: HttpResponse) -> None:
        """Pass the response on, unless there was one or the client has left."""
        connection = self.connection
        if connection is not None:
            self.connection = self.give_up = None
            connection.unread_hold.move_to(self.holder)
            self.body = b""
            connection.write_answer(answer, keep_alive=self.keep_alive)


class RequestReader:
    """Parses received bytes and puts requests into the connection's queue.

    A prediction is queued when it is complete, a request for the app at the end of its head. Only
    the parsed head of the last prediction is remembered, never its bytes.
    """

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.context, self.loop = connection.context, connection.loop
        self.handler = connection.handler
        self.max_body_bytes = connection.context.max_body_bytes
        self.parser = request_parser(self)
        # The request in progress: in its head, or with the head of a prediction or the cycle of the
        # app until its body ends.
        self.is_in_head = False
        self.head: RequestHead | None = None
        self.cycle: RequestResponseCycle | None = None
        # The parsed head of the last prediction.
        self.known: RequestHead | None = None
        self.url = self.length = self.request_id = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.keep_alive = self.expects = self.is_upgrade = False
        self.body: bytes | bytearray | mmap = b""
        # All memory of a large body, while it is received past the parser.
        self.whole: memoryview | None = None
        self.pieces: list[bytes] = []  # of a body for the app
        # Bytes since the end of the last head or request, and bytes of the body among them.
        self.n_received = self.n_body = 0
        self.seen_body = 0  # bytes of the body at the last check of its rate
        # The tenant's limiter, and what the body holds of the bytes in transfer.
        self.meter: TenantLimiter | None = None
        self.hold: Hold | None = None
        # Start of the request.
        self.arrived = self.loop.time()
        # Received bytes from this position on are not parsed yet.
        self.received = b""
        self.position = 0

    def on_message_begin(self) -> None:
        """Start a request."""
        self.is_in_head = True
        self.arrived = self.connection.since = self.loop.time()
        self.url = self.length = self.request_id = b""
        self.headers = []

    def on_url(self, url: bytes) -> None:
        """Append a piece of the target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header but no trailer; headers that vary between requests are kept apart."""
        if not self.is_in_head:
            return
        name = name.lower()
        if name == b"content-length":
            self.length = value
        elif name == b"x-request-id" and not self.request_id:
            self.request_id = value
        else:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Recognise a head equal to that of the last prediction, or interpret a new one."""
        parser, known = self.parser, self.known
        self.keep_alive = parser.should_keep_alive()
        if (
            known is None
            or known.headers != self.headers
            or known.target != self.url
            or not self.keep_alive
            or parser.get_method() != b"POST"
            or len(self.length) + len(self.request_id) > SHORT_BYTES
        ):
            self._interpret_head()
        else:
            self.expects = False
            self.head = known
        self.is_in_head = False
        self.n_received = 0
        if self.request_id:
            self.request_id = accepted_id(self.request_id)
        if self.length and self.head is not None and int(self.length) > self.max_body_bytes:
            self._refuse_body()

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body, or pass it to the app."""
        self.n_body += len(body)
        cycle = self.cycle
        if cycle is None:
            if self.n_body > self.max_body_bytes:
                self._refuse_body()
            if not self.body:
                self.body = body
            else:
                self._append_to_body(body)
        elif not cycle.response_complete:
            self.pieces.append(body)

    def _pass_on(self) -> None:
        """Pass the pieces of a body to the app: together, because each time the body is copied."""
        cycle = self.cycle
        if self.pieces and cycle is not None:
            cycle.body += b"".join(self.pieces)
            if self.is_ahead():
                self.connection.flow.pause_reading()
            cycle.message_event.set()
        self.pieces.clear()

    def is_ahead(self) -> bool:
        """Tell whether the app has still to take much of a body."""
        cycle = self.cycle
        return (
            cycle is not None and not cycle.response_complete and len(cycle.body) > HIGH_WATER_LIMIT
        )

    def _append_to_body(self, piece: bytes) -> None:
        """Append to the body.

        A list of small pieces would take many times their size. A large bytearray would be copied
        as it grows, and its memory touched at once: that would stop the event loop for long.
        """
        body = bytearray(self.body) if isinstance(self.body, bytes) else self.body
        if isinstance(body, bytearray) and self.n_body > LARGE_BODY_BYTES:
            begun, body = body, untouched_memory(int(self.length or 0) or self.max_body_bytes)
            body[: len(begun)] = begun
        if isinstance(body, bytearray):
            body += piece
        else:
            body[self.n_body - len(piece) : self.n_body] = piece
        self.body = body

    def receive_whole(self) -> bool:
        """Begin to receive the rest of a body past the parser, if it is large and has a length."""
        is_large = self.head is not None and int(self.length or 0) >= LARGE_BODY_BYTES
        if not is_large or self.whole is not None:
            return False
        begun, self.body = self.body, untouched_memory(int(self.length))
        self.body[: self.n_body] = begun[: self.n_body]
        self.whole = memoryview(self.body)
        return True

    def received_whole(self, n_bytes: int) -> None:
        """Count bytes that were received past the parser; end the request with the last one."""
        self.n_received += n_bytes
        self.n_body += n_bytes
        if self.whole is not None and self.n_body == len(self.whole):
            self.whole = None
            # The parser still expects the body; this one ends the request and reads the next.
            framing = [] if self.keep_alive else [(b"connection", b"close")]
            self.parser = resumed_parser(self, framing)

    def _whole_body(self) -> bytes:
        """Return the body; readers of bodies take any buffer, and a large one is not copied."""
        body, self.body = self.body, b""
        return first_bytes(body, self.n_body) if isinstance(body, mmap) else bytes(body)

    def on_message_complete(self) -> None:
        """End the request."""
        if self.is_upgrade:
            return  # httptools ends it at its head, before its body
        if self.head is not None:
            head, self.head = self.head, None
            body = self._whole_body()
            if self.meter is not None:
                self.end_hold()
            self.connection.queue.append(
                Prediction(
                    head,
                    body,
                    self.arrived,
                    self.request_id,
                    connection=self.connection,
                    keep_alive=self.keep_alive,
                )
            )
        elif self.cycle is not None:
            self._pass_on()
            cycle, self.cycle = self.cycle, None
            cycle.more_body = False
            cycle.message_event.set()
        self.n_received = self.n_body = self.seen_body = 0

    def is_receiving(self) -> bool:
        """Tell whether a request is incomplete."""
        return self.is_in_head or self.head is not None or self.cycle is not None

    def has_head(self) -> bool:
        """Tell whether a request with a complete head is incomplete."""
        return self.head is not None or self.cycle is not None

    def receive(self, data: bytes) -> None:
        """Keep received bytes until they are parsed."""
        self.received = self.received[self.position :] + data if self.received else data
        self.position = 0

    def forget(self) -> None:
        """Forget bytes that are not parsed."""
        self.received, self.position = b"", 0

    def parse_some(self) -> None:
        """Parse received bytes up to the end of a head or body, or a little beyond it.

        A client may send ten thousand requests at once. They stay bytes until their turn, because
        each parsed request takes thirty times as much memory.
        """
        data, start = self.received, self.position
        end = len(data)
        if end - start > PIECE_BYTES:
            end = min(end, self._end_of_piece())
        if end == len(data):
            self.forget()
        else:
            self.position = end
        self._feed(data if end - start == len(data) else memoryview(data)[start:end])
        self._pass_on()

    def _end_of_piece(self) -> int:
        start, least = self.position, self.position + PIECE_BYTES
        if not self.has_head():
            end = self.received.find(END_OF_HEAD, start, least)
            return least if end < 0 else end + len(END_OF_HEAD)
        if self.length:
            return start + int(self.length) - self.n_body
        # The end of a chunked body looks like that of a head.
        most = least + CHUNKED_BYTES
        end = self.received.find(END_OF_HEAD, least, most)
        return most if end < 0 else end + len(END_OF_HEAD)

    def _feed(self, rest: bytes | memoryview) -> None:
        self.n_received += len(rest)
        while rest:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = memoryview(rest)[upgrade.args[0] :]
                self._ignore_upgrade()
                continue
            except httptools.HttpParserCallbackError as error:
                cause = error.__context__
                self.connection.refuse(cause if isinstance(cause, ServiceError) else _malformed())
            except httptools.HttpParserError:
                self.connection.refuse(_malformed())
            return

    def _ignore_upgrade(self) -> None:
        """Ignore the offer of HTTP/2, which some clients add to ordinary requests.

        httptools ends such a request at its head, whatever its length. Another parser gets the same
        length, reads the body and continues with later requests.
        """
        self.is_upgrade = False
        framing = [pair for pair in self.headers if pair[0] == b"transfer-encoding"]
        if self.length:
            framing.append((b"content-length", self.length))
        self.parser = resumed_parser(self, framing)

    def _interpret_head(self) -> None:
        """Check a head, and start a prediction or a cycle of the app."""
        parser, context = self.parser, self.context
        version = parser.get_http_version()
        self.keep_alive = self.keep_alive and version == "1.1"
        headers = list(self.headers)
        if self.length:
            headers.append((b"content-length", self.length))
        if self.request_id:
            headers.append((b"x-request-id", self.request_id))
        context.limits.check_head(self.url, headers)
        check_framing(version, headers)
        self.expects = expects_continue(headers)
        self.is_upgrade = parser.should_upgrade()
        is_post = parser.get_method() == b"POST"
        if context.predictions is not None and is_post:
            self.head = prediction_head(self.url, self.headers)
        if self.head is None:
            self.cycle = app_cycle(self.connection, version, headers)
            self.connection.queue.append(self.cycle)
        elif self.keep_alive and not self.is_upgrade and may_be_remembered(headers):
            self.known = self.head

    def _refuse_body(self) -> None:
        """Refuse a body that is too long, after authentication."""
        self._authenticate()
        raise TooLarge.at("body", f"expected at most {self.max_body_bytes} bytes")

    def check_unfinished(self) -> None:
        """Check an incomplete request."""
        limits, connection = self.context.limits, self.connection
        if limits.is_exceeded(beside_body=self.n_received - self.n_body, body=self.n_body):
            connection.refuse(limits.head_too_large())
        elif self.head is not None:
            try:
                self._hold_bytes()
            except ServiceError as error:
                connection.refuse(error)
                return
            is_next = connection.current is None and not connection.queue
            if self.expects and not self.body and is_next:
                self.expects = False
                connection.transport.write(CONTINUE)

    def _authenticate(self) -> TenantLimiter:
        """Authenticate the caller, once per body."""
        if self.meter is None:
            assert self.head is not None  # noqa: S101 - only asked for predictions
            self.meter = self.handler.authenticate(self.head)
        return self.meter

    def _hold_bytes(self) -> None:
        """Hold the declared length of an incomplete body, or its received bytes."""
        if self.hold is None:
            meter = self._authenticate()
            if meter.requests is not None:
                meter.requests.check_available()
            self.hold = Hold(self.context.receiving, meter.holder)
        self.hold.change_to(max(int(self.length or 0), self.n_body))

    def end_hold(self) -> None:
        """End the hold: the body is complete or abandoned."""
        if self.hold is not None:
            self.hold.change_to(0)
        self.meter = self.hold = self.whole = None
        self.body = b""


def _malformed() -> MalformedRequest:
    return MalformedRequest.at("request", "it cannot be read as HTTP/1.1")
